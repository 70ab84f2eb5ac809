// One JSON value, checked byte by byte as it arrives.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace braid::net {

// Needs no more memory than a byte a nesting level.
class JsonScanner {
 public:
  enum class Status {
    kMore,
    kComplete,  // with this byte
    kEnded,     // a number ended before this byte, which was not taken
    kInvalid,   // this byte, which was not taken, cannot follow
  };

  // Takes one byte and appends to `out` what it settles. Line feeds and other control characters within strings, which models
  // write and JSON forbids, are escaped. Nothing may follow kComplete, kEnded or kInvalid but close().
  Status feed(char c, std::string& out);

  bool in_escape() const { return state_ == State::kEscape || state_ == State::kUnicode; }
  bool before_member() const { return state_ == State::kFirstKey || state_ == State::kNextKey; }
  // Within a member of an object, before its value.
  bool in_member_name() const;

  // Appends what makes a valid value of the bytes appended so far: null for a missing value, ends of strings and containers.
  // At least one byte that is not white space has been taken.
  void close(std::string& out);

 private:
  enum class State : std::uint8_t {
    kValue,
    kFirstItem,
    kFirstKey,
    kNextKey,
    kColon,
    kAfter,
    kDone,
    kString,
    kEscape,
    kUnicode,
    kLiteral,
    kMinus,
    kZero,
    kInteger,
    kPoint,
    kFraction,
    kExponent,
    kExponentSign,
    kExponentDigits,
  };

  bool may_take_space() const;
  Status begin_value(char c, std::string& out);
  Status in_string(char c, std::string& out);
  Status in_number(char c, std::string& out);
  Status after_value(char c, std::string& out);
  Status end_container(char c, std::string& out);
  Status end_value();
  Status enter(State state, char c, std::string& out);
  void take(char c, std::string& out);

  State state_ = State::kValue;
  bool key_ = false;          // the string is a member's name
  std::uint8_t digits_ = 0;   // of \uXXXX still to come
  std::string_view literal_;  // what is left of true, false or null
  std::string open_;          // '{' and '[' that are open
  std::string held_;          // a comma, which close() must not leave, and what follows it
};

}  // namespace braid::net
