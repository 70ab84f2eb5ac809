#include "net/generation/parser/json_scanner.h"

#include "net/generation/parser/characters.h"

#include <fmt/format.h>
#include <iterator>

namespace braid::net {
namespace {

bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

}  // namespace

bool JsonScanner::may_take_space() const {
  switch (state_) {
    case State::kValue:
    case State::kFirstItem:
    case State::kFirstKey:
    case State::kNextKey:
    case State::kColon:
    case State::kAfter:
      return true;
    case State::kDone:
    case State::kString:
    case State::kEscape:
    case State::kUnicode:
    case State::kLiteral:
    case State::kMinus:
    case State::kZero:
    case State::kInteger:
    case State::kPoint:
    case State::kFraction:
    case State::kExponent:
    case State::kExponentSign:
    case State::kExponentDigits:
      break;
  }
  return false;
}

JsonScanner::Status JsonScanner::feed(char c, std::string& out) {
  if (is_space(c) && may_take_space()) {
    (held_.empty() ? out : held_) += c;
    return Status::kMore;
  }
  switch (state_) {
    case State::kFirstItem:
      return c == ']' ? end_container(c, out) : begin_value(c, out);
    case State::kValue:
      return begin_value(c, out);
    case State::kFirstKey:
      if (c == '}') return end_container(c, out);
      [[fallthrough]];
    case State::kNextKey:
      if (c != '"') return Status::kInvalid;
      key_ = true;
      return enter(State::kString, c, out);
    case State::kColon:
      return c == ':' ? enter(State::kValue, c, out) : Status::kInvalid;
    case State::kAfter:
      return after_value(c, out);
    case State::kString:
    case State::kEscape:
    case State::kUnicode:
      return in_string(c, out);
    case State::kLiteral:
      if (c != literal_.front()) return Status::kInvalid;
      take(c, out);
      literal_.remove_prefix(1);
      return literal_.empty() ? end_value() : Status::kMore;
    case State::kMinus:
    case State::kZero:
    case State::kInteger:
    case State::kPoint:
    case State::kFraction:
    case State::kExponent:
    case State::kExponentSign:
    case State::kExponentDigits:
      return in_number(c, out);
    case State::kDone:
      break;
  }
  return Status::kInvalid;
}

JsonScanner::Status JsonScanner::begin_value(char c, std::string& out) {
  switch (c) {
    case '{':
    case '[':
      open_ += c;
      return enter(c == '{' ? State::kFirstKey : State::kFirstItem, c, out);
    case '"':
      key_ = false;
      return enter(State::kString, c, out);
    case 't':
    case 'f':
    case 'n':
      literal_ = c == 't' ? "rue" : c == 'f' ? "alse" : "ull";
      return enter(State::kLiteral, c, out);
    case '-':
      return enter(State::kMinus, c, out);
    case '0':
      return enter(State::kZero, c, out);
    default:
      return is_digit(c) ? enter(State::kInteger, c, out) : Status::kInvalid;
  }
}

JsonScanner::Status JsonScanner::in_string(char c, std::string& out) {
  if (state_ == State::kUnicode) {
    if (!is_hex(c)) return Status::kInvalid;
    out += c;
    if (--digits_ == 0) state_ = State::kString;
    return Status::kMore;
  }
  if (state_ == State::kEscape) {
    if (std::string_view("\"\\/bfnrtu").find(c) == std::string_view::npos) return Status::kInvalid;
    digits_ = 4;
    return enter(c == 'u' ? State::kUnicode : State::kString, c, out);
  }
  if (c == '\\') return enter(State::kEscape, c, out);
  if (c == '"') {
    out += c;
    if (!key_) return end_value();
    state_ = State::kColon;
    return Status::kMore;
  }
  if (c == '\n') {
    out += "\\n";
  } else if (static_cast<unsigned char>(c) < 0x20) {
    fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
  } else {
    out += c;
  }
  return Status::kMore;
}

JsonScanner::Status JsonScanner::in_number(char c, std::string& out) {
  const bool exponent = c == 'e' || c == 'E';
  switch (state_) {
    case State::kMinus:
      if (!is_digit(c)) return Status::kInvalid;
      return enter(c == '0' ? State::kZero : State::kInteger, c, out);
    case State::kPoint:
      return is_digit(c) ? enter(State::kFraction, c, out) : Status::kInvalid;
    case State::kExponent:
      if (c == '+' || c == '-') return enter(State::kExponentSign, c, out);
      [[fallthrough]];
    case State::kExponentSign:
      return is_digit(c) ? enter(State::kExponentDigits, c, out) : Status::kInvalid;
    case State::kInteger:
      if (is_digit(c)) return enter(State::kInteger, c, out);
      [[fallthrough]];
    case State::kZero:
      if (c == '.') return enter(State::kPoint, c, out);
      if (exponent) return enter(State::kExponent, c, out);
      break;
    case State::kFraction:
      if (is_digit(c)) return enter(State::kFraction, c, out);
      if (exponent) return enter(State::kExponent, c, out);
      break;
    case State::kExponentDigits:
      if (is_digit(c)) return enter(State::kExponentDigits, c, out);
      break;
    case State::kValue:
    case State::kFirstItem:
    case State::kFirstKey:
    case State::kNextKey:
    case State::kColon:
    case State::kAfter:
    case State::kDone:
    case State::kString:
    case State::kEscape:
    case State::kUnicode:
    case State::kLiteral:
      return Status::kInvalid;  // no number
  }
  if (end_value() == Status::kComplete) return Status::kEnded;
  return feed(c, out);
}

bool JsonScanner::in_member_name() const {
  const bool in_string = state_ == State::kString || state_ == State::kEscape || state_ == State::kUnicode;
  const bool behind_colon = state_ == State::kValue && !open_.empty() && open_.back() == '{';
  return (in_string && key_) || state_ == State::kColon || behind_colon;
}

JsonScanner::Status JsonScanner::after_value(char c, std::string& out) {
  if (c != ',') return end_container(c, out);
  held_ = ",";
  state_ = open_.back() == '{' ? State::kNextKey : State::kValue;
  return Status::kMore;
}

JsonScanner::Status JsonScanner::end_container(char c, std::string& out) {
  if (c != (open_.back() == '{' ? '}' : ']')) return Status::kInvalid;
  take(c, out);
  open_.pop_back();
  return end_value();
}

JsonScanner::Status JsonScanner::end_value() {
  state_ = open_.empty() ? State::kDone : State::kAfter;
  return open_.empty() ? Status::kComplete : Status::kMore;
}

JsonScanner::Status JsonScanner::enter(State state, char c, std::string& out) {
  take(c, out);
  state_ = state;
  return Status::kMore;
}

void JsonScanner::take(char c, std::string& out) {
  out += held_;
  held_.clear();
  out += c;
}

void JsonScanner::close(std::string& out) {
  switch (state_) {
    case State::kEscape:
      out += '\\';
      [[fallthrough]];
    case State::kUnicode:
      if (state_ == State::kUnicode) out.append(digits_, '0');
      [[fallthrough]];
    case State::kString:
      out += key_ ? "\":null" : "\"";
      break;
    case State::kColon:
      out += ":null";
      break;
    case State::kValue:
      if (held_.empty()) out += "null";  // behind a colon; behind a comma nothing is missing once the comma is left out
      break;
    case State::kLiteral:
      out += literal_;
      break;
    case State::kMinus:
    case State::kPoint:
    case State::kExponent:
    case State::kExponentSign:
      out += '0';
      break;
    case State::kFirstItem:
    case State::kFirstKey:
    case State::kNextKey:
    case State::kAfter:
    case State::kDone:
    case State::kZero:
    case State::kInteger:
    case State::kFraction:
    case State::kExponentDigits:
      break;
  }
  for (; !open_.empty(); open_.pop_back()) out += open_.back() == '{' ? '}' : ']';
  held_.clear();
  state_ = State::kDone;
}

}  // namespace braid::net
