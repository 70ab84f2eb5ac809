#include "net/json/parse.h"

#include "net/json/fields.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <optional>
#include <simdjson.h>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace braid::net::json {
namespace {

namespace dom = simdjson::dom;

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // some editors and shells write it before a document

bool has_equal_keys(const ValueDict& dict) {
  std::vector<std::string_view> keys;
  keys.reserve(dict.size());
  for (const auto& [key, value] : dict) keys.push_back(key);
  std::ranges::sort(keys);
  return std::ranges::adjacent_find(keys) != keys.end();
}

void keep_last_of_equal_keys(ValueDict& dict) {
  std::unordered_set<std::string> seen;
  std::ranges::reverse(dict);
  std::erase_if(dict, [&seen](const auto& member) { return !seen.insert(member.first).second; });
  std::ranges::reverse(dict);
}

// A number of a text, counted from its beginning, that has more digits than the library reads.
struct LongNumber {
  std::size_t index;
  std::string text;
};

class Converter {
 public:
  explicit Converter(std::vector<LongNumber> long_numbers) : long_numbers_(std::move(long_numbers)) {}

  // Valid after the conversion: whether kMaxValues was respected.
  bool within_limit() const { return values_ <= kMaxValues; }

  Value convert(const dom::element& element) {
    if (++values_ > kMaxValues) return {};
    switch (element.type()) {
      case dom::element_type::ARRAY:
        return convert_list(element.get_array().value_unsafe());
      case dom::element_type::OBJECT:
        return convert_dict(element.get_object().value_unsafe());
      case dom::element_type::INT64:
        ++numbers_;
        return element.get_int64().value_unsafe();
      case dom::element_type::UINT64:
        ++numbers_;
        return LongInteger{fmt::format("{}", element.get_uint64().value_unsafe())};
      case dom::element_type::DOUBLE:
        return convert_real(element.get_double().value_unsafe());
      case dom::element_type::STRING:
        return std::string(element.get_string().value_unsafe());
      case dom::element_type::BOOL:
        return element.get_bool().value_unsafe();
      case dom::element_type::NULL_VALUE:
        break;
    }
    return {};
  }

 private:
  Value convert_list(const dom::array& array) {
    ValueList list;
    for (const dom::element item : array) {
      list.push_back(convert(item));
      if (!within_limit()) break;
    }
    return list;
  }

  Value convert_dict(const dom::object& object) {
    ValueDict dict;
    for (const auto& [key, item] : object) {
      dict.emplace_back(std::string(key), convert(item));
      if (!within_limit()) break;
    }
    if (has_equal_keys(dict)) keep_last_of_equal_keys(dict);
    return dict;
  }

  Value convert_real(double value) {
    const std::size_t index = numbers_++;
    if (next_long_ == long_numbers_.size() || long_numbers_[next_long_].index != index) return value;
    return LongInteger{std::move(long_numbers_[next_long_++].text)};
  }

  int values_ = 0;
  std::size_t numbers_ = 0;               // so far
  std::vector<LongNumber> long_numbers_;  // in their order
  std::size_t next_long_ = 0;             // of them
};

// Whole numbers beyond 64 bits, which the library refuses, become real ones: an exponent of zero is put behind them. Those that there
// were.
std::vector<LongNumber> widen_long_integers(std::string& text) {
  constexpr std::size_t kLong = 19;  // fewer digits always fit
  constexpr std::string_view kNumber = "0123456789+-.eE";
  std::vector<LongNumber> found;
  std::string out;
  std::size_t kept = 0;
  std::size_t numbers = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"') {
      while (++at < text.size() && text[at] != '"') at += text[at] == '\\' ? 1 : 0;
      continue;
    }
    if (kNumber.find(text[at]) == std::string_view::npos || text[at] == 'e' || text[at] == 'E') continue;  // an e within a word
    const std::size_t end = std::min(text.find_first_not_of(kNumber, at), text.size());
    const std::string_view number = std::string_view(text).substr(at, end - at);
    if (number.size() >= kLong && number.find_first_of(".eE") == std::string_view::npos) {
      out.append(text, kept, end - kept).append("e0");
      kept = end;
      found.push_back({numbers, std::string(number)});
    }
    ++numbers;
    at = end - 1;
  }
  if (!found.empty()) text = out.append(text, kept);
  return found;
}

// Of an escape of four hexadecimal digits at `at`, their number; nullopt: none stands there.
std::optional<unsigned> escaped_unit(std::string_view text, std::size_t at) {
  constexpr std::size_t kLength = 6;
  unsigned unit = 0;
  if (text.size() < at + kLength || text[at] != '\\' || text[at + 1] != 'u') return std::nullopt;
  const char* end = text.data() + at + kLength;
  return std::from_chars(text.data() + at + 2, end, unit, 16).ptr == end ? std::optional(unit) : std::nullopt;
}

// Halves of characters, which the library refuses: what programs make that cut a text between two units of UTF-16. Whether there were any.
bool replace_lone_surrogates(std::string& text) {
  constexpr std::string_view kReplacement = "\\ufffd";
  const auto is_high = [](unsigned unit) { return unit >= 0xD800 && unit < 0xDC00; };
  const auto is_low = [](unsigned unit) { return unit >= 0xDC00 && unit < 0xE000; };
  bool found = false;
  for (std::size_t at = text.find('\\'); at != std::string::npos; at = text.find('\\', at)) {
    const unsigned unit = escaped_unit(text, at).value_or(0);
    const bool is_pair = is_high(unit) && is_low(escaped_unit(text, at + kReplacement.size()).value_or(0));
    if (is_pair) {
      at += 2 * kReplacement.size();
      continue;
    }
    if (is_high(unit) || is_low(unit)) {
      text.replace(at, kReplacement.size(), kReplacement);
      found = true;
    }
    at += 2;
  }
  return found;
}

}  // namespace

Result<Value> parse(std::string& text) {
  text.reserve(text.size() + simdjson::SIMDJSON_PADDING);
  dom::parser parser;
  if (parser.allocate(text.size(), kMaxDepth) != simdjson::SUCCESS) return Error{ErrorCode::kTooLarge, "the body is too large", ""};
  dom::element root;
  const std::size_t begin = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  // Newer versions of simdjson would take the second one for the first.
  if (std::string_view(text).substr(begin).starts_with(kByteOrderMark)) return invalid_argument("the body has two byte order marks");
  const auto attempt = [&] {
    text.reserve(text.size() + simdjson::SIMDJSON_PADDING);
    return parser.parse(text.data() + begin, text.size() - begin, false).get(root);
  };
  auto failure = attempt();
  if (failure == simdjson::STRING_ERROR && replace_lone_surrogates(text)) failure = attempt();
  std::vector<LongNumber> long_numbers;
  if (failure != simdjson::SUCCESS) long_numbers = widen_long_integers(text);  // the error's number differs between simdjson's versions
  if (!long_numbers.empty()) {
    failure = attempt();
    if (failure == simdjson::STRING_ERROR && replace_lone_surrogates(text)) failure = attempt();
  }
  if (failure == simdjson::DEPTH_ERROR) return invalid_argument(fmt::format("the body nests deeper than {} levels", kMaxDepth));
  if (failure == simdjson::NUMBER_ERROR) return invalid_argument("the body has a number that is not valid JSON, or too large");
  if (failure != simdjson::SUCCESS) return invalid_argument(fmt::format("the body is not valid JSON: {}", error_message(failure)));
  Converter converter(std::move(long_numbers));
  Value value = converter.convert(root);
  if (!converter.within_limit()) return invalid_argument(fmt::format("the body holds more than {} values", kMaxValues));
  return value;
}

Result<Value> parse_object(std::string& text) {
  Result<Value> document = parse(text);
  if (document && document->get_if<ValueDict>() == nullptr)
    return invalid_argument(fmt::format("the body must be a JSON object, not {}", type_name(*document)));
  return document;
}

}  // namespace braid::net::json
