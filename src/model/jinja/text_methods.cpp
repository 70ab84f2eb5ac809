// Methods of text, with Python's names and meaning.
#include "model/jinja/native.h"
#include "model/jinja/text_format.h"
#include "model/jinja/text_operations.h"
#include "model/jinja/unicode_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace braid::model::jinja {
namespace {

const std::string& self(const Arguments& arguments) { return *arguments[0].text(); }

// The text of an argument; fails for another type.
std::string_view text_argument(Runtime& runtime, const Object& value) {
  if (const auto* text = value.text()) return *text;
  runtime.fail(fmt::format("expected a string, not {}", type_name(value)));
  return {};
}

template <Side kSide>
Object run_strip(Runtime& runtime, Arguments& arguments) {
  if (!arguments.given(1) || arguments[1].is_none()) return runtime.text(std::string(strip(self(arguments), kSide)));
  return runtime.text(std::string(strip(self(arguments), kSide, text_argument(runtime, arguments[1]))));
}

Object split(Runtime& runtime, Arguments& arguments, bool from_right) {
  const auto limit = arguments.given(2) ? runtime.to_integer(arguments[2], "maxsplit") : -1;
  const bool by_space = !arguments.given(1) || arguments[1].is_none();
  std::vector<std::string_view> parts;
  if (by_space) {
    parts = from_right ? split_spaces_right(self(arguments), limit) : split_spaces(self(arguments), limit);
  } else {
    const auto separator = text_argument(runtime, arguments[1]);
    if (separator.empty()) return runtime.fail("the separator of split is empty");
    parts = from_right ? split_by_right(self(arguments), separator, limit) : split_by(self(arguments), separator, limit);
  }
  return text_list(runtime, parts);
}
Object run_split(Runtime& runtime, Arguments& arguments) { return split(runtime, arguments, false); }
Object run_rsplit(Runtime& runtime, Arguments& arguments) { return split(runtime, arguments, true); }

Object run_splitlines(Runtime& runtime, Arguments& arguments) {
  return text_list(runtime, split_lines(self(arguments), arguments.given(1) && arguments[1].truth()));
}

template <bool kAtStart>
Object run_starts(Runtime& runtime, Arguments& arguments) {
  const std::string_view text = self(arguments);
  const auto matches = [&](const Object& affix) {
    const auto part = text_argument(runtime, affix);
    if (part.size() > text.size()) return false;
    return text.substr(kAtStart ? 0 : text.size() - part.size(), part.size()) == part;
  };
  const auto* several = arguments[1].sequence();
  if (several == nullptr) return matches(arguments[1]);
  return std::any_of(several->items.begin(), several->items.end(), matches);
}

template <bool kAtStart>
Object run_remove_affix(Runtime& runtime, Arguments& arguments) {
  const std::string_view text = self(arguments);
  const auto part = text_argument(runtime, arguments[1]);
  const bool matches = run_starts<kAtStart>(runtime, arguments).truth();
  if (!matches || part.empty()) return arguments[0];
  return runtime.text(std::string(kAtStart ? text.substr(part.size()) : text.substr(0, text.size() - part.size())));
}

template <std::string (*kMap)(std::string_view)>
Object run_map(Runtime& runtime, Arguments& arguments) { return runtime.text(kMap(self(arguments))); }

Object run_replace(Runtime& runtime, Arguments& arguments) {
  const auto count = arguments.given(3) ? runtime.to_integer(arguments[3], "count") : -1;
  return replace_text(runtime, self(arguments), text_argument(runtime, arguments[1]), text_argument(runtime, arguments[2]), count);
}

// The place of a part in code points, or -1.
std::int64_t find_part(Runtime& runtime, const Arguments& arguments, bool last) {
  std::string_view text = self(arguments);
  const auto part = text_argument(runtime, arguments[1]);
  std::size_t begin = 0;
  if (arguments.given(2)) {
    auto start = runtime.to_integer(arguments[2], "start");
    if (start < 0) start = std::max<std::int64_t>(0, start + static_cast<std::int64_t>(count_code_points(text)));
    begin = offset_of_code_point(text, static_cast<std::size_t>(start));
  }
  const auto at = last ? text.substr(begin).rfind(part) : text.substr(begin).find(part);
  return at == std::string_view::npos ? -1 : static_cast<std::int64_t>(count_code_points(text.substr(0, begin + at)));
}
Object run_find(Runtime& runtime, Arguments& arguments) { return find_part(runtime, arguments, false); }
Object run_rfind(Runtime& runtime, Arguments& arguments) { return find_part(runtime, arguments, true); }
Object run_index(Runtime& runtime, Arguments& arguments) {
  const auto at = find_part(runtime, arguments, false);
  return at < 0 ? runtime.fail("index: the string does not hold that part") : Object(at);
}

Object run_count(Runtime& runtime, Arguments& arguments) {
  const auto part = text_argument(runtime, arguments[1]);
  if (part.empty()) return static_cast<std::int64_t>(count_code_points(self(arguments)) + 1);
  return static_cast<std::int64_t>(split_by(self(arguments), part, -1).size() - 1);
}

Object run_join(Runtime& runtime, Arguments& arguments) {
  std::string out;
  const auto items = runtime.iterate(arguments[1]);
  for (std::size_t i = 0; i < items.size() && runtime.spend(self(arguments).size()); ++i) {
    if (i > 0) out += self(arguments);
    out += text_argument(runtime, items[i]);
    if (out.size() > runtime.bytes_left()) return runtime.fail("a joined string is too large");
  }
  return runtime.text(std::move(out));
}

Object run_format(Runtime& runtime, Arguments& arguments) { return brace_format(runtime, self(arguments), arguments); }

// All characters pass, and there is one.
template <bool (*kTest)(std::int32_t)>
Object run_all(Runtime&, Arguments& arguments) {
  const auto& text = self(arguments);
  for (std::size_t at = 0; at < text.size();)
    if (!kTest(next_code_point(text, at))) return false;
  return !text.empty();
}
bool is_letter_or_digit(std::int32_t code_point) { return is_letter(code_point) || is_digit(code_point); }

// No cased character of the other case, and one of this.
template <bool (*kWanted)(std::int32_t), bool (*kUnwanted)(std::int32_t)>
Object run_is_case(Runtime&, Arguments& arguments) { return has_only_case(self(arguments), kWanted, kUnwanted); }

Object run_zfill(Runtime& runtime, Arguments& arguments) {
  const auto width = runtime.to_integer(arguments[1], "width");
  const auto length = static_cast<std::int64_t>(count_code_points(self(arguments)));
  if (width <= length) return arguments[0];
  if (width > 100'000) return runtime.fail("zfill is too wide");
  std::string text = self(arguments);
  const std::size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  text.insert(sign, static_cast<std::size_t>(width - length), '0');
  return runtime.text(std::move(text));
}

template <bool kLast>
Object run_partition(Runtime& runtime, Arguments& arguments) {
  const std::string_view text = self(arguments);
  const auto part = text_argument(runtime, arguments[1]);
  if (part.empty()) return runtime.fail("the separator of partition is empty");
  const auto at = kLast ? text.rfind(part) : text.find(part);
  std::vector<std::string_view> parts;
  if (at == std::string_view::npos) {
    parts = kLast ? std::vector<std::string_view>{"", "", text} : std::vector<std::string_view>{text, "", ""};
  } else {
    parts = {text.substr(0, at), part, text.substr(at + part.size())};
  }
  return text_list(runtime, parts, Sequence::Kind::kTuple);
}

constexpr Native kMethods[] = {
    {"capitalize", "self", run_map<capitalize>},
    {"count", "self sub", run_count},
    {"endswith", "self suffix", run_starts<false>},
    {"find", "self sub start?", run_find},
    {"format", "self * **", run_format},
    {"index", "self sub start?", run_index},
    {"isalnum", "self", run_all<is_letter_or_digit>},
    {"isalpha", "self", run_all<is_letter>},
    {"isdecimal", "self", run_all<is_digit>},
    {"isdigit", "self", run_all<is_digit>},
    {"islower", "self", run_is_case<is_lower, is_upper>},
    {"isnumeric", "self", run_all<is_digit>},
    {"isspace", "self", run_all<is_space>},
    {"isupper", "self", run_is_case<is_upper, is_lower>},
    {"join", "self iterable", run_join},
    {"lower", "self", run_map<to_lower>},
    {"lstrip", "self chars?", run_strip<Side::kLeft>},
    {"partition", "self sep", run_partition<false>},
    {"removeprefix", "self prefix", run_remove_affix<true>},
    {"removesuffix", "self suffix", run_remove_affix<false>},
    {"replace", "self old new count?", run_replace},
    {"rfind", "self sub start?", run_rfind},
    {"rpartition", "self sep", run_partition<true>},
    {"rsplit", "self sep? maxsplit?", run_rsplit},
    {"rstrip", "self chars?", run_strip<Side::kRight>},
    {"split", "self sep? maxsplit?", run_split},
    {"splitlines", "self keepends?", run_splitlines},
    {"startswith", "self prefix", run_starts<true>},
    {"strip", "self chars?", run_strip<Side::kBoth>},
    {"title", "self", run_map<title>},
    {"upper", "self", run_map<to_upper>},
    {"zfill", "self width", run_zfill},
};

}  // namespace

const Native* find_text_method(std::string_view name) { return find_in(kMethods, name); }

}  // namespace braid::model::jinja
