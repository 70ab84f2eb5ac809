// Methods of text, with Python's names and meaning.
#include "text/jinja/native.h"
#include "text/jinja/text_format.h"
#include "text/jinja/text_operations.h"
#include "text/jinja/unicode_text.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>

namespace braid::text::jinja {
namespace {
namespace text_methods {  // the filters have the same names

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

struct Part {
  std::string_view text;
  std::size_t begin = 0;  // its place in the whole, in bytes
};

// What the arguments `first`, a start, and the one behind it, an end, leave of the text, in Python's way; nothing when the start lies behind
// the end.
std::optional<Part> part_of(Runtime& runtime, const Arguments& arguments, std::size_t first) {
  const std::string_view text = self(arguments);
  const auto given = [&](std::size_t at) { return arguments.given(at) && !arguments[at].is_none(); };
  if (!given(first) && !given(first + 1)) return Part{text};
  const auto length = static_cast<std::int64_t>(count_code_points(text));
  const auto place = [&](std::size_t at, std::int64_t otherwise) {
    const auto index = given(at) ? runtime.to_integer(arguments[at], "a place in a string") : otherwise;
    return index < 0 ? std::max<std::int64_t>(index + length, 0) : index;
  };
  const auto start = place(first, 0);
  const auto end = std::min(place(first + 1, length), length);
  if (start > end) return std::nullopt;
  const std::size_t begin = offset_of_code_point(text, static_cast<std::size_t>(start));
  return Part{text.substr(begin, offset_of_code_point(text, static_cast<std::size_t>(end)) - begin), begin};
}

bool has_affix(std::string_view text, std::string_view affix, bool at_start) {
  return at_start ? text.starts_with(affix) : text.ends_with(affix);
}

template <bool kAtStart>
Object run_starts(Runtime& runtime, Arguments& arguments) {
  const auto part = part_of(runtime, arguments, 2);
  const auto matches = [&](const Object& affix) { return has_affix(part->text, text_argument(runtime, affix), kAtStart); };
  const auto* several = arguments[1].sequence();
  if (several != nullptr && several->kind != Sequence::Kind::kTuple)
    return runtime.fail("startswith and endswith take a string or a tuple");
  if (!part) return false;
  return several == nullptr ? matches(arguments[1]) : std::any_of(several->items.begin(), several->items.end(), matches);
}

template <bool kAtStart>
Object run_remove_affix(Runtime& runtime, Arguments& arguments) {
  const std::string_view text = self(arguments);
  const auto part = text_argument(runtime, arguments[1]);
  if (!has_affix(text, part, kAtStart) || part.empty()) return arguments[0];
  return runtime.text(std::string(kAtStart ? text.substr(part.size()) : text.substr(0, text.size() - part.size())));
}

template <std::string (*kMap)(std::string_view)>
Object run_map(Runtime& runtime, Arguments& arguments) {
  return runtime.text(kMap(self(arguments)));
}

Object run_replace(Runtime& runtime, Arguments& arguments) {
  const auto count = arguments.given(3) ? runtime.to_integer(arguments[3], "count") : -1;
  return replace_text(runtime, self(arguments), text_argument(runtime, arguments[1]), text_argument(runtime, arguments[2]), count);
}

// The place of a part in code points, or -1.
template <bool kLast>
std::int64_t find_part(Runtime& runtime, const Arguments& arguments) {
  const auto wanted = text_argument(runtime, arguments[1]);
  const auto part = part_of(runtime, arguments, 2);
  if (!part) return -1;
  const auto at = kLast ? part->text.rfind(wanted) : part->text.find(wanted);
  if (at == std::string_view::npos) return -1;
  return static_cast<std::int64_t>(count_code_points(std::string_view(self(arguments)).substr(0, part->begin + at)));
}
template <bool kLast>
Object run_find(Runtime& runtime, Arguments& arguments) {
  return find_part<kLast>(runtime, arguments);
}
template <bool kLast>
Object run_index(Runtime& runtime, Arguments& arguments) {
  const auto at = find_part<kLast>(runtime, arguments);
  return at < 0 ? runtime.fail("index: the string does not hold that part") : Object(at);
}

Object run_count(Runtime& runtime, Arguments& arguments) {
  const auto wanted = text_argument(runtime, arguments[1]);
  const auto part = part_of(runtime, arguments, 2);
  if (!part) return std::int64_t{0};
  if (wanted.empty()) return static_cast<std::int64_t>(count_code_points(part->text) + 1);
  return static_cast<std::int64_t>(split_by(part->text, wanted, -1).size() - 1);
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
Object run_is_ascii(Runtime&, Arguments& arguments) {
  return std::none_of(self(arguments).begin(), self(arguments).end(), [](char c) { return (static_cast<unsigned char>(c) & 0x80U) != 0; });
}
bool is_letter_or_digit(std::int32_t code_point) { return is_letter(code_point) || is_digit(code_point); }

// No cased character of the other case, and one of this.
template <bool (*kWanted)(std::int32_t), bool (*kUnwanted)(std::int32_t)>
Object run_is_case(Runtime&, Arguments& arguments) {
  return has_only_case(self(arguments), kWanted, kUnwanted);
}

// How many characters the text lacks to the width in its first argument.
std::size_t missing_width(Runtime& runtime, const Arguments& arguments) {
  const auto width = runtime.to_integer(arguments[1], "width");
  const auto length = static_cast<std::int64_t>(count_code_points(self(arguments)));
  if (width > 100'000) runtime.fail("a string is made too wide");
  return runtime.failed() || width <= length ? 0 : static_cast<std::size_t>(width - length);
}

Object run_zfill(Runtime& runtime, Arguments& arguments) {
  std::string text = self(arguments);
  const std::size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  text.insert(sign, missing_width(runtime, arguments), '0');
  return runtime.text(std::move(text));
}

// Where the text stands in its width. Of an odd rest Python's center puts the further one in front when the width is odd.
template <Side kSide>
Object run_justify(Runtime& runtime, Arguments& arguments) {
  const std::string fill(arguments.given(2) ? text_argument(runtime, arguments[2]) : " ");
  if (!runtime.failed() && count_code_points(fill) != 1) return runtime.fail("what fills a string is one character");
  const std::size_t missing = missing_width(runtime, arguments);
  if (missing == 0) return arguments[0];
  const std::size_t odd_width = (missing + count_code_points(self(arguments))) & 1U;
  const std::size_t before = kSide == Side::kLeft ? 0 : (kSide == Side::kRight ? missing : missing / 2 + (missing & odd_width));
  std::string out;
  for (std::size_t i = 0; i < before; ++i) out += fill;
  out += self(arguments);
  for (std::size_t i = before; i < missing; ++i) out += fill;
  return runtime.text(std::move(out));
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
    {"casefold", "self", run_map<casefold>},
    {"center", "self width fillchar?", run_justify<Side::kBoth>},
    {"count", "self sub start? end?", run_count},
    {"endswith", "self suffix start? end?", run_starts<false>},
    {"find", "self sub start? end?", run_find<false>},
    {"format", "self * **", run_format},
    {"index", "self sub start? end?", run_index<false>},
    {"isalnum", "self", run_all<is_letter_or_digit>},
    {"isalpha", "self", run_all<is_letter>},
    {"isascii", "self", run_is_ascii},
    {"isdecimal", "self", run_all<is_digit>},
    {"isdigit", "self", run_all<is_digit>},
    {"islower", "self", run_is_case<is_lower, is_upper>},
    {"isnumeric", "self", run_all<is_digit>},
    {"isspace", "self", run_all<is_space>},
    {"isupper", "self", run_is_case<is_upper, is_lower>},
    {"join", "self iterable", run_join},
    {"ljust", "self width fillchar?", run_justify<Side::kLeft>},
    {"lower", "self", run_map<to_lower>},
    {"lstrip", "self chars?", run_strip<Side::kLeft>},
    {"partition", "self sep", run_partition<false>},
    {"removeprefix", "self prefix", run_remove_affix<true>},
    {"removesuffix", "self suffix", run_remove_affix<false>},
    {"replace", "self old new count?", run_replace},
    {"rfind", "self sub start? end?", run_find<true>},
    {"rindex", "self sub start? end?", run_index<true>},
    {"rjust", "self width fillchar?", run_justify<Side::kRight>},
    {"rpartition", "self sep", run_partition<true>},
    {"rsplit", "self sep? maxsplit?", run_rsplit},
    {"rstrip", "self chars?", run_strip<Side::kRight>},
    {"split", "self sep? maxsplit?", run_split},
    {"splitlines", "self keepends?", run_splitlines},
    {"startswith", "self prefix start? end?", run_starts<true>},
    {"strip", "self chars?", run_strip<Side::kBoth>},
    {"swapcase", "self", run_map<swap_case>},
    {"title", "self", run_map<title>},
    {"upper", "self", run_map<to_upper>},
    {"zfill", "self width", run_zfill},
};

}  // namespace text_methods
}  // namespace

const Native* find_text_method(std::string_view name) { return find_in(text_methods::kMethods, name); }

}  // namespace braid::text::jinja
