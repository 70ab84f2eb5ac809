// Filters about text. Like Jinja's they take any value and work on its text.
#include "text/jinja/filters.h"
#include "text/jinja/text_format.h"
#include "text/jinja/text_operations.h"
#include "text/jinja/unicode_text.h"

#include <algorithm>

namespace braid::text::jinja {
namespace {

template <std::string (*kMap)(std::string_view)>
Object run_map(Runtime& runtime, Arguments& arguments) {
  return runtime.text(kMap(runtime.to_text(arguments[0])));
}

Object run_trim(Runtime& runtime, Arguments& arguments) {
  const std::string text = runtime.to_text(arguments[0]);
  if (!arguments.given(1) || arguments[1].is_none()) return runtime.text(std::string(strip(text, Side::kBoth)));
  return runtime.text(std::string(strip(text, Side::kBoth, runtime.to_text(arguments[1]))));
}

Object run_replace(Runtime& runtime, Arguments& arguments) {
  const bool limited = arguments.given(3) && !arguments[3].is_none();
  const auto count = limited ? runtime.to_integer(arguments[3], "the count of replace") : -1;
  return replace_text(runtime, runtime.to_text(arguments[0]), runtime.to_text(arguments[1]), runtime.to_text(arguments[2]), count);
}

// Jinja's own rule: words start behind white space, hyphens and opening brackets.
std::string title_words(std::string_view text) {
  std::string out;
  bool starts = true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const std::int32_t c = next_code_point(text, at);
    const auto character = text.substr(begin, at - begin);
    out += starts ? to_upper(character) : to_lower(character);
    starts = is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
  }
  return out;
}

Object run_indent(Runtime& runtime, Arguments& arguments) {
  const bool first = arguments.given(2) && arguments[2].truth();
  const bool blank = arguments.given(3) && arguments[3].truth();
  std::string indent = "    ";
  if (arguments.given(1) && arguments[1].text() != nullptr) {
    indent = *arguments[1].text();
  } else if (arguments.given(1)) {
    const auto width = std::clamp<std::int64_t>(runtime.to_integer(arguments[1], "the width of indent"), 0, 1000);
    indent = std::string(static_cast<std::size_t>(width), ' ');
  }
  const std::string text = runtime.to_text(arguments[0]) + "\n";
  const auto lines = split_lines(text, false);
  std::string out = first ? indent : "";
  for (std::size_t i = 0; i < lines.size() && out.size() <= runtime.bytes_left(); ++i) {
    if (i > 0) out += "\n";
    if (i > 0 && (blank || !lines[i].empty())) out += indent;
    out += lines[i];
  }
  return runtime.text(std::move(out));
}

Object run_safe(Runtime& runtime, Arguments& arguments) {
  return arguments[0].text() != nullptr ? arguments[0] : runtime.text(runtime.to_text(arguments[0]));
}

Object run_format(Runtime& runtime, Arguments& arguments) {
  const std::string format = runtime.to_text(arguments[0]);
  if (arguments.named.empty()) return percent_format(runtime, format, runtime.sequence(std::move(arguments.rest), Sequence::Kind::kTuple));
  auto members = std::make_shared<Dict>();
  for (auto& [name, value] : arguments.named) runtime.set(*members, Object::from_text(name), value);
  return percent_format(runtime, format, runtime.dict(std::move(members)));
}

Object run_wordcount(Runtime& runtime, Arguments& arguments) {
  const std::string text = runtime.to_text(arguments[0]);
  std::int64_t count = 0;
  bool in_word = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::int32_t c = next_code_point(text, at);
    const bool belongs = is_letter(c) || is_digit(c) || c == '_';
    count += belongs && !in_word ? 1 : 0;
    in_word = belongs;
  }
  return count;
}

Object run_center(Runtime& runtime, Arguments& arguments) {
  Callable::Call call;
  call.positional = {runtime.text(runtime.to_text(arguments[0])), arguments.given(1) ? arguments[1] : Object(std::int64_t{80})};
  return run_native(runtime, *find_text_method("center"), std::move(call));
}

// A text that is `leeway` longer than its length at most stays whole; others end with `end`, and without `killwords` with a word.
Object run_truncate(Runtime& runtime, Arguments& arguments) {
  const std::string end = arguments.given(3) ? runtime.to_text(arguments[3]) : "...";
  const auto length = arguments.given(1) ? runtime.to_integer(arguments[1], "the length of truncate") : 255;
  const bool spares = arguments.given(4) && !arguments[4].is_none();
  const auto leeway = spares ? runtime.to_integer(arguments[4], "the leeway of truncate") : 5;
  const auto end_length = static_cast<std::int64_t>(count_code_points(end));
  if (length < end_length || leeway < 0) return runtime.fail("truncate needs a length that holds its end, and no leeway below 0");
  const auto size = static_cast<std::int64_t>(runtime.length(arguments[0]));
  if (size <= length || size - length <= leeway) return arguments[0];
  const auto* text = arguments[0].text();
  if (text == nullptr) return runtime.fail("truncate needs a string");
  std::string kept = text->substr(0, offset_of_code_point(*text, static_cast<std::size_t>(length - end_length)));
  const bool whole_words = !arguments.given(2) || !arguments[2].truth();
  if (whole_words) kept.resize(std::min(kept.rfind(' '), kept.size()));
  return runtime.text(kept + end);
}

constexpr Native kTextFilters[] = {
    {"capitalize", "value", run_map<capitalize>},
    {"center", "value width?", run_center},
    {"format", "value * **", run_format},
    {"indent", "value width? first? blank?", run_indent},
    {"lower", "value", run_map<to_lower>},
    {"replace", "value old new count?", run_replace},
    {"safe", "value", run_safe},
    {"title", "value", run_map<title_words>},
    {"trim", "value chars?", run_trim},
    {"truncate", "s length? killwords? end? leeway?", run_truncate},
    {"upper", "value", run_map<to_upper>},
    {"wordcount", "value", run_wordcount},
};

}  // namespace

const Native* find_text_filter(std::string_view name) { return find_in(kTextFilters, name); }

}  // namespace braid::text::jinja
