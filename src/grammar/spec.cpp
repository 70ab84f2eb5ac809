#include "grammar/spec.h"

#include "grammar/build.h"
#include "grammar/ebnf/grammar_text.h"
#include "grammar/json/syntax.h"
#include "grammar/regex.h"

#include <algorithm>
#include <fmt/format.h>
#include <type_traits>

namespace braid::grammar {
namespace {

constexpr std::size_t kMaxConstraintNesting = 32;
constexpr std::size_t kMaxOptions = 10'000;

Error refused(const std::string& path, std::string_view why) { return invalid_argument(fmt::format("{}: {}", path, why), path); }

// What may be left out alone, unless it is strict.
bool is_part(const ConstraintSpec& spec) {
  return std::holds_alternative<ConstraintSpec::JsonSchema>(spec.kind) || std::holds_alternative<ConstraintSpec::TextMember>(spec.kind);
}

class Translator {
 public:
  Translator(const Vocabulary& vocabulary, Grammar& grammar, const Objection& objects_to, const std::set<std::string>& barren)
      : vocabulary_(vocabulary), grammar_(grammar), objects_to_(objects_to), barren_(barren) {}

  Result<ExprId> translate(const ConstraintSpec& spec) {
    if (nesting_ >= kMaxConstraintNesting) return refused(spec.path, "the constraint nests too deep");
    ++nesting_;
    Result<ExprId> expr = is_part(spec) ? translate_part(spec) : visit(spec);
    --nesting_;
    return expr;
  }

  Translated take(ExprId root) { return {root, std::move(parts_), std::move(demands_), std::move(left_out_)}; }

 private:
  Result<ExprId> visit(const ConstraintSpec& spec) {
    return std::visit([&](const auto& kind) { return of(kind, spec.path); }, spec.kind);
  }

  // A schema or a member's text.
  Result<ExprId> translate_part(const ConstraintSpec& spec) {
    const auto* schema = std::get_if<ConstraintSpec::JsonSchema>(&spec.kind);
    const std::optional<Error> objection = objects_to_(spec);
    const std::size_t before = left_out_.size();
    const Result<ExprId> expr = objection ? Result<ExprId>(*objection) : visit(spec);
    if (expr) parts_.push_back(*expr);
    if (expr || (schema != nullptr && schema->strict)) return expr;
    left_out_.resize(before);  // the whole is
    left_out_.push_back(spec.path);
    json::Syntax syntax(grammar_);
    const auto* member = std::get_if<ConstraintSpec::TextMember>(&spec.kind);
    if (member != nullptr) return syntax.braces(syntax.member(grammar_.bytes(json::quote(member->name)), syntax.string()));
    return schema->object ? syntax.object() : syntax.value();
  }

  Result<ExprId> of(const ConstraintSpec::JsonObject&, const std::string&) { return json::Syntax(grammar_).object(); }

  Result<ExprId> of(const ConstraintSpec::JsonSchema& kind, const std::string& path) {
    json::Leniency leniency(kind.strict, kind.schema, path);
    json::SchemaCompiler compiler(grammar_, kind.schema, path, leniency, barren_);
    const auto expr = kind.object ? compiler.compile_objects() : compiler.compile();
    for (json::Demand& demand : compiler.take_demands()) demands_.push_back(std::move(demand));
    for (std::string& place : leniency.take()) left_out_.push_back(std::move(place));
    return expr;
  }

  Result<ExprId> of(const ConstraintSpec::Regex& kind, const std::string& path) {
    RegexOptions options;
    options.character = [&](const CodePointSet& set) { return grammar_.chars(set); };
    const auto expr = parse_regex(kind.pattern, grammar_, options);
    return expr ? expr : Result<ExprId>(refused(path, expr.error().message));
  }

  Result<ExprId> of(const ConstraintSpec::Choice& kind, const std::string& path) {
    if (kind.options.empty() || kind.options.size() > kMaxOptions)
      return refused(path, fmt::format("1 to {} choices are supported", kMaxOptions));
    std::vector<ExprId> options;
    for (const std::string& option : kind.options) options.push_back(grammar_.bytes(option));
    return grammar_.choice(std::move(options));
  }

  Result<ExprId> of(const ConstraintSpec::Grammar& kind, const std::string& path) {
    const auto expr = parse_grammar_text(kind.text, grammar_);
    return expr ? expr : Result<ExprId>(refused(path, expr.error().message));
  }

  Result<ExprId> of(const ConstraintSpec::TextMember& kind, const std::string& path) {
    json::Syntax syntax(grammar_);
    RegexOptions options;
    options.character = [&](const CodePointSet& set) { return syntax.string_character(set); };
    const auto content = kind.is_regex ? parse_regex(kind.text, grammar_, options) : parse_lark(kind.text, grammar_, options.character);
    if (!content) return refused(path, content.error().message);
    if (!kind.is_regex) remove_direct_left_recursion(grammar_);
    return syntax.braces(syntax.member(grammar_.bytes(json::quote(kind.name)), syntax.quoted(*content)));
  }

  Result<ExprId> of(const ConstraintSpec::Literal& kind, const std::string&) {
    return grammar_.bytes(vocabulary_.mark_control_tokens(kind.text));
  }

  Result<ExprId> of(const ConstraintSpec::FreeUntil& kind, const std::string& path) {
    if (kind.end.empty()) return refused(path, "free text needs an end");
    return grammar_.until(spellings({kind.end}));
  }

  Result<ExprId> of(const ConstraintSpec::FreeWithout& kind, const std::string& path) {
    std::vector<std::string> ends = kind.more;
    ends.push_back(kind.end);
    if (std::any_of(ends.begin(), ends.end(), [](const std::string& end) { return end.empty(); }))
      return refused(path, "free text needs an end");
    return grammar_.without(spellings(ends), kind.not_first);
  }

  Result<ExprId> of(const ConstraintSpec::Sequence& kind, const std::string&) {
    auto parts = translate_all(kind.parts);
    return parts ? Result<ExprId>(grammar_.sequence(std::move(*parts))) : parts.error();
  }

  Result<ExprId> of(const ConstraintSpec::Alternatives& kind, const std::string&) {
    auto options = translate_all(kind.options);
    return options ? Result<ExprId>(grammar_.choice(std::move(*options))) : options.error();
  }

  Result<ExprId> of(const ConstraintSpec::Repeat& kind, const std::string& path) {
    if (kind.item.size() != 1 || kind.least < 0 || (kind.most >= 0 && kind.most < kind.least))
      return refused(path, "a repetition has one item and sound limits");
    const auto item = translate(kind.item.front());
    if (!item) return item;
    return grammar_.repeat(*item, static_cast<std::uint32_t>(kind.least),
                           kind.most < 0 ? kUnbounded : static_cast<std::uint32_t>(kind.most));
  }

  // Markers as control tokens, and spelled out: whoever reads the text does not tell them apart.
  std::vector<std::string> spellings(const std::vector<std::string>& markers) const {
    std::vector<std::string> words;
    for (const std::string& marker : markers) {
      words.push_back(vocabulary_.mark_control_tokens(marker));
      if (words.back() != marker) words.push_back(marker);
    }
    return words;
  }

  Result<std::vector<ExprId>> translate_all(const std::vector<ConstraintSpec>& specs) {
    std::vector<ExprId> out;
    for (const ConstraintSpec& spec : specs) {
      const auto expr = translate(spec);
      if (!expr) return expr.error();
      out.push_back(*expr);
    }
    return out;
  }

  const Vocabulary& vocabulary_;
  Grammar& grammar_;
  const Objection& objects_to_;
  const std::set<std::string>& barren_;
  std::vector<ExprId> parts_;
  std::vector<json::Demand> demands_;
  std::vector<std::string> left_out_;
  std::size_t nesting_ = 0;
};

// Lengths before texts keep keys apart that would otherwise run together.
class Key {
 public:
  void add(const ConstraintSpec& spec) {
    mark(spec.kind.index());
    std::visit([&](const auto& kind) { of(kind); }, spec.kind);
    const auto* schema = std::get_if<ConstraintSpec::JsonSchema>(&spec.kind);
    if (is_part(spec)) text(schema != nullptr && schema->strict ? "" : "." + spec.path);
  }
  std::string take() { return std::move(out_); }

 private:
  void mark(std::uint64_t number) { fmt::format_to(std::back_inserter(out_), "{} ", number); }
  void text(const std::string& text) {
    mark(text.size());
    out_ += text;
  }

  void value(const Value& value) {
    mark(value.storage().index());
    std::visit(
        [&](const auto& held) {
      using Held = std::decay_t<decltype(held)>;
      if constexpr (std::is_same_v<Held, std::string>) {
        text(held);
      } else if constexpr (std::is_same_v<Held, LongInteger>) {
        text(held.text);
      } else if constexpr (std::is_same_v<Held, ValueList>) {
        mark(held.size());
        for (const Value& item : held) this->value(item);
      } else if constexpr (std::is_same_v<Held, ValueDict>) {
        mark(held.size());
        for (const auto& [name, item] : held) {
          text(name);
          this->value(item);
        }
      } else if constexpr (!std::is_same_v<Held, std::nullptr_t>) {
        fmt::format_to(std::back_inserter(out_), "{} ", held);
      }
        },
        value.storage());
  }

  void of(const ConstraintSpec::JsonObject&) {}
  void of(const ConstraintSpec::JsonSchema& kind) {
    value(kind.schema);
    mark(kind.object ? 1 : 0);
  }
  void of(const ConstraintSpec::Regex& kind) { text(kind.pattern); }
  void of(const ConstraintSpec::Choice& kind) {
    mark(kind.options.size());
    for (const std::string& option : kind.options) text(option);
  }
  void of(const ConstraintSpec::Grammar& kind) { text(kind.text); }
  void of(const ConstraintSpec::TextMember& kind) {
    text(kind.name);
    text(kind.text);
    mark(kind.is_regex ? 1 : 0);
  }
  void of(const ConstraintSpec::Literal& kind) { text(kind.text); }
  void of(const ConstraintSpec::FreeUntil& kind) { text(kind.end); }
  void of(const ConstraintSpec::FreeWithout& kind) {
    text(kind.end);
    mark(kind.more.size());
    for (const std::string& end : kind.more) text(end);
    text(kind.not_first);
  }
  void of(const ConstraintSpec::Sequence& kind) { all(kind.parts); }
  void of(const ConstraintSpec::Alternatives& kind) { all(kind.options); }
  void of(const ConstraintSpec::Repeat& kind) {
    fmt::format_to(std::back_inserter(out_), "{} {} ", kind.least, kind.most);
    all(kind.item);
  }
  void all(const std::vector<ConstraintSpec>& specs) {
    mark(specs.size());
    for (const ConstraintSpec& spec : specs) add(spec);
  }

  std::string out_;
};

}  // namespace

Result<Translated> translate(const ConstraintSpec& spec, const Vocabulary& vocabulary, Grammar& grammar, const Objection& objects_to,
                             const std::set<std::string>& barren) {
  Translator translator(vocabulary, grammar, objects_to, barren);
  const auto root = translator.translate(spec);
  return root ? Result<Translated>(translator.take(*root)) : root.error();
}

bool has_parts(const ConstraintSpec& spec) {
  const auto any = [](const std::vector<ConstraintSpec>& specs) { return std::any_of(specs.begin(), specs.end(), has_parts); };
  if (const auto* sequence = std::get_if<ConstraintSpec::Sequence>(&spec.kind)) return any(sequence->parts);
  if (const auto* choice = std::get_if<ConstraintSpec::Alternatives>(&spec.kind)) return any(choice->options);
  if (const auto* repeat = std::get_if<ConstraintSpec::Repeat>(&spec.kind)) return any(repeat->item);
  return is_part(spec);
}

std::string cache_key(const ConstraintSpec& spec) {
  Key key;
  key.add(spec);
  return key.take();
}

}  // namespace braid::grammar
