#include "net/generation/custom_input.h"

#include "braid/value.h"
#include "net/generation/parser/characters.h"
#include "net/generation/parser/whole_object.h"
#include "net/json/parse.h"

#include <charconv>
#include <cstddef>
#include <utility>

namespace braid::net {
namespace {

constexpr std::string_view kBegin = R"({"input":")";

void append_utf8(std::string& out, unsigned code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
    return;
  }
  const unsigned more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;  // bytes that follow
  constexpr unsigned kFirst[] = {0xC0, 0xE0, 0xF0};
  out += static_cast<char>(kFirst[more - 1] | (code >> (6 * more)));
  for (unsigned i = more; i-- > 0;) out += static_cast<char>(0x80U | ((code >> (6 * i)) & 0x3FU));
}

constexpr unsigned kReplacement = 0xFFFD;  // for half a surrogate pair

}  // namespace

std::string CustomInput::feed(std::string_view piece) {
  arguments_ += piece;
  std::string text;
  for (const char c : piece) {
    if (stage_ == Stage::kBegin) {
      begin(c);
    } else if (stage_ == Stage::kText) {
      take(c, text);
    }
  }
  return text;
}

// Whitespace may stand around its words, not in them.
void CustomInput::begin(char c) {
  const bool between = matched_ <= 1 || matched_ >= kBegin.size() - 2;
  if (between && is_space(c)) return;
  if (c != kBegin[matched_]) {
    stage_ = Stage::kOther;
  } else if (++matched_ == kBegin.size()) {
    stage_ = Stage::kText;
  }
}

void CustomInput::take(char c, std::string& text) {
  if (!escape_.empty()) {
    escape_ += c;
    if (escape_[1] != 'u' || escape_.size() == 6) take_escape(text);
    return;
  }
  if (c == '\\') {
    escape_ = c;
    return;
  }
  if (high_surrogate_ != 0) append_utf8(text, kReplacement);
  high_surrogate_ = 0;
  if (c == '"') {
    stage_ = Stage::kEnd;
  } else {
    text += c;
  }
}

void CustomInput::take_escape(std::string& text) {
  const std::string escape = std::exchange(escape_, {});
  constexpr std::string_view kNames = "bfnrt";
  constexpr std::string_view kMeant = "\b\f\n\r\t";
  unsigned code = static_cast<unsigned char>(escape[1]);
  if (const std::size_t at = kNames.find(escape[1]); at != std::string_view::npos) code = static_cast<unsigned char>(kMeant[at]);
  if (escape[1] == 'u') std::from_chars(escape.data() + 2, escape.data() + escape.size(), code, 16);
  const unsigned high = std::exchange(high_surrogate_, 0U);
  const bool is_low = code >= 0xDC00 && code < 0xE000;
  if (high != 0 && is_low) return append_utf8(text, 0x10000 + ((high - 0xD800) << 10U) + (code - 0xDC00));
  if (high != 0) append_utf8(text, kReplacement);
  if (code >= 0xD800 && code < 0xDC00) {
    high_surrogate_ = code;
  } else {
    append_utf8(text, is_low ? kReplacement : code);
  }
}

std::string CustomInput::finish() {
  if (stage_ == Stage::kText || stage_ == Stage::kEnd || arguments_.empty()) return {};
  std::string whole = whole_object(arguments_);
  std::string copy = whole;
  const Result<Value> parsed = json::parse(copy);
  const auto* members = parsed ? parsed->get_if<ValueDict>() : nullptr;
  const auto* only = members != nullptr && members->size() == 1 ? members->front().second.get_if<std::string>() : nullptr;
  if (members != nullptr && members->empty()) return {};
  return only != nullptr ? *only : whole;
}

}  // namespace braid::net
