#include "net/generation/calls_in_text.h"

#include "net/generation/call_parts.h"
#include "net/generation/other_words.h"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>
#include <utility>

namespace braid::net {
namespace {

using Spec = ConstraintSpec;

constexpr std::string_view kAnySpace = R"([ \n\r\t]*)";
// What the reader of JSON calls passes over, what it takes for a name, and for arguments: json_call_reader.cpp.
constexpr std::string_view kHarmlessMember = R"re("(?:type|id|tool_call_id)")re";
constexpr std::string_view kNameMember = R"re("(?:name|function|tool_name)")re";
constexpr std::string_view kArgumentsMember = R"re("(?:arguments|parameters)")re";
const std::vector<std::string> kCallMembers = {"name", "function", "tool_name", "arguments", "parameters", "type", "id", "tool_call_id"};
constexpr std::string_view kScalarValue = R"((?:"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+\-]*|true|false|null))";

Spec regex(std::string pattern) { return {Spec::Regex{std::move(pattern)}, kToolsPath}; }
Spec in_order(std::vector<Spec> parts) { return sequence(std::move(parts), kToolsPath); }
Spec either(std::vector<Spec> options) { return {Spec::Alternatives{std::move(options)}, kToolsPath}; }
Spec repeat(Spec item, std::int32_t least, std::int32_t most) { return {Spec::Repeat{{std::move(item)}, least, most}, kToolsPath}; }

// A marker as a control token or spelled out.
Spec marker(const std::string& text) { return either({literal(text, kToolsPath), regex(escaped(text))}); }

class Builder {
 public:
  Builder(const ToolRules& rules, const CallSyntax& syntax) : rules_(rules), syntax_(syntax) {
    for (const ToolFunction& function : rules.functions) names_.push_back(function.name);
    for (const std::string& begin : syntax.begin)
      if (firsts_.find(begin.front()) == std::string::npos) firsts_ += begin.front();
  }

  Spec build(const std::string& not_first) const {
    std::vector<Spec> behind_markers;
    for (const std::string& begin : syntax_.begin)
      behind_markers.push_back(begin == syntax_.fence ? in_order({marker(begin), opened("")})
                                                      : in_order({marker(begin), regex(std::string(kAnySpace)), calls()}));
    std::vector<Spec> parts;
    parts.push_back(syntax_.bare ? opened(not_first) : free(not_first));
    parts.push_back(repeat(either(std::move(behind_markers)), 0, -1));
    return in_order(std::move(parts));
  }

 private:
  Spec free(std::string not_first = {}) const {
    return {Spec::FreeWithout{syntax_.begin.front(), {syntax_.begin.begin() + 1, syntax_.begin.end()}, std::move(not_first)}, kToolsPath};
  }

  // From where a bracket may begin a call to the next marker.
  Spec opened(const std::string& not_first) const {
    const std::string list = fmt::format(R"((?:\[{})?)", kAnySpace);
    std::vector<Spec> others;
    others.push_back(in_order({regex(list), other_object()}));
    others.push_back(regex(fmt::format(R"(\[{}{})", kAnySpace, other_item())));
    std::vector<Spec> options;
    options.push_back(in_order({regex(std::string(kAnySpace)), calls()}));
    options.push_back(in_order({regex(std::string(kAnySpace)), either(std::move(others)), free()}));
    options.push_back(free("{[" + not_first));
    return either(std::move(options));
  }

  // Calls, in a list or not, and text behind them that begins no further one.
  Spec calls() const {
    std::vector<Spec> items = {object()};
    if (is_pythonic()) items.push_back(python_call());
    std::vector<Spec> parts = {regex(fmt::format(R"((?:\[{})?)", kAnySpace))};
    parts.push_back(repeat(in_order({either(std::move(items)), regex(fmt::format("{0}[,;]?{0}", kAnySpace))}), 1,
                           rules_.parallel ? 1 + kMaxFurtherCalls : 1));
    std::string in_list;  // where the list is left open, a name begins a call
    for (char c = 'a'; is_pythonic() && c <= 'z'; ++c) in_list.append({c, static_cast<char>(c - 'a' + 'A')});
    if (is_pythonic()) in_list += '_';
    parts.push_back(either({in_order({regex(R"(\])"), text_behind("")}), text_behind(in_list)}));
    return in_order(std::move(parts));
  }

  // Text behind a call, which must not begin as another one does, or what the parser passes over before it; nor with one of `more`.
  Spec text_behind(const std::string& more) const {
    std::string not_first = "{[,;]`" + more;
    std::vector<Spec> ends;
    for (const std::string& end : syntax_.end) {
      not_first += end.front();
      ends.push_back(marker(end));
    }
    std::vector<Spec> options = {free(not_first)};
    if (!ends.empty()) options.push_back(in_order({regex(std::string(kAnySpace)), either(std::move(ends)), free(not_first)}));
    if (!syntax_.fence.empty()) {  // what closes it, unless it is the beginning of another
      constexpr std::string_view kClose = "```";
      options.push_back(in_order({regex(std::string(kAnySpace).append(kClose)), free(not_first + syntax_.fence[kClose.size()])}));
    }
    return either(std::move(options));
  }

  bool is_pythonic() const { return syntax_.form == CallSyntax::Form::kPythonic; }

  // An object up to the member by which it is a call, or none.
  static Spec begin_of_object() {
    return regex(fmt::format(R"(\{{{0}(?:{1}{0}:{0}{2}{0},{0})*)", kAnySpace, kHarmlessMember, kScalarValue));
  }

  Spec object() const {
    std::vector<Spec> options;
    for (const ToolFunction& function : rules_.functions)
      options.push_back(in_order(
          {regex(fmt::format(R"({1}{0}:{0}"{2}"{0},{0}{3}{0}:{0})", kAnySpace, kNameMember, escaped(function.name), kArgumentsMember)),
           arguments_of(function), regex(fmt::format(R"({}\}})", kAnySpace))}));
    return in_order({begin_of_object(), either(std::move(options))});
  }

  Spec python_call() const {
    std::vector<Spec> options;
    for (const ToolFunction& function : rules_.functions)
      options.push_back(
          in_order({literal(function.name + "(**", function.path), arguments_of(function), regex(fmt::format(R"({}\))", kAnySpace))}));
    return either(std::move(options));
  }

  // An object up to where it can be no call any more.
  Spec other_object() const {
    const std::string no_string = fmt::format(R"([^" \n\r\t{}])", escaped(firsts_));
    std::vector<Spec> options;
    options.push_back(regex("\"" + strings_but(kCallMembers)));
    options.push_back(regex(other_name(no_string)));
    options.push_back(in_order({regex(fmt::format(R"({1}{0}:{0})", kAnySpace, kArgumentsMember)), nameless_arguments(no_string)}));
    options.push_back(regex(fmt::format(R"({1}{0}:{0}{2}{0}\}})", kAnySpace, kHarmlessMember, kScalarValue)));
    options.push_back(regex(no_string));
    return in_order({begin_of_object(), either(std::move(options))});
  }

  // A name that is no function's.
  std::string other_name(const std::string& no_string) const {
    return fmt::format(R"({1}{0}:{0}(?:{2}|"{3}))", kAnySpace, kNameMember, no_string, strings_but(names_));
  }

  // A value that is no arguments, which null and a string with an object are; or an object, and what follows it names no function.
  Spec nameless_arguments(const std::string& no_string) const {
    const std::string begin = fmt::format(R"((?:{0},{0}{1}{0}:{0}{2})*{0})", kAnySpace, kHarmlessMember, kScalarValue);
    std::vector<Spec> ends = {regex(R"(\})"), regex(fmt::format(R"(,{0}"{1})", kAnySpace, strings_but(kCallMembers))),
                              regex(fmt::format(R"(,{0}{1})", kAnySpace, other_name(no_string)))};
    std::vector<Spec> options = {regex(fmt::format(R"((?:""|"[A-Za-z0-9]|[^n\{{" \n\r\t{}]))", escaped(firsts_))),
                                 in_order({{Spec::JsonObject{}, kToolsPath}, regex(begin), either(std::move(ends))})};
    return either(std::move(options));
  }

  // What stands in a list and begins no call.
  std::string other_item() const {
    const std::string never = "{ \n\r\t" + firsts_;
    return is_pythonic() ? no_call_of(names_, never) : fmt::format("[^{}]", escaped(never));
  }

  const ToolRules& rules_;
  const CallSyntax& syntax_;
  std::vector<std::string> names_;
  std::string firsts_;  // of the markers: a character that parts ways with a call must not begin one
};

}  // namespace

ConstraintSpec calls_in_text(const ToolRules& rules, const CallSyntax& syntax, const std::string& not_first) {
  return Builder(rules, syntax).build(not_first);
}

}  // namespace braid::net
