#include "net/generation/parser/call_reader.h"
#include "net/generation/parser/characters.h"
#include "net/json/write.h"

#include <string_view>

namespace braid::net {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_identifier_byte(char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '-'; }

// The JSON word for a Python one; empty if there is none.
std::string_view json_word(std::string_view word) {
  if (word == "True" || word == "true") return "true";
  if (word == "False" || word == "false") return "false";
  if (word == "None" || word == "null") return "null";
  return {};
}

// NAME(key=literal, …), or NAME(**{…}) with an object of JSON: translated to JSON on the way, which the scanner checks.
class PythonicCallReader final : public CallReader {
 public:
  PythonicCallReader(CallWriter& writer, const AnswerSyntax& syntax, bool bare) : CallReader(writer, syntax, bare) {}

  Status feed(char c) override {
    const Status status = dispatch(c);
    writer_.arguments(settled_);
    settled_.clear();
    complete_ = status == Status::kComplete;
    return status;
  }

  bool names_function() const override {
    if (state_ == State::kName) return !name_.empty() && begins_declared(name_);
    return is_declared(name_);
  }

  void close() override {
    if (complete_) return;
    scanner_.close(settled_);
    writer_.arguments(settled_);
    settled_.clear();
  }

 private:
  enum class State { kName, kBeforeKey, kKey, kValue, kString, kEscape, kStar, kObject, kAfterObject };

  Status dispatch(char c) {
    switch (state_) {
      case State::kName:
        return in_name(c);
      case State::kBeforeKey:
        if (is_space(c)) return Status::kMore;
        if (c == ')') return end();
        if (c == '*' && !begun_) return enter(State::kStar);
        key_ = c;
        return is_letter(c) ? enter(State::kKey) : Status::kInvalid;
      case State::kKey:
        return in_key(c);
      case State::kValue:
        return in_value(c);
      case State::kString:
        return in_string(c);
      case State::kEscape:
        return in_escape(c);
      case State::kStar:
        return c == '*' ? enter(State::kObject) : Status::kInvalid;
      case State::kObject:
        return in_object(c);
      case State::kAfterObject:
        if (c == ')') return Status::kComplete;
        return is_space(c) ? Status::kMore : Status::kInvalid;
    }
    return Status::kInvalid;
  }

  Status in_object(char c) {
    if (!begun_ && is_space(c)) return Status::kMore;
    if (!begun_ && (c != '{' || !begin(name_))) return Status::kInvalid;
    const JsonScanner::Status status = scanner_.feed(c, settled_);
    if (status == JsonScanner::Status::kInvalid) return Status::kInvalid;
    return status == JsonScanner::Status::kComplete ? enter(State::kAfterObject) : Status::kMore;
  }

  Status enter(State state) {
    state_ = state;
    return Status::kMore;
  }

  // Whether the scanner takes all of `json`.
  bool put(std::string_view json) {
    for (const char c : json)
      if (scanner_.feed(c, settled_) == JsonScanner::Status::kInvalid) return false;
    return true;
  }

  Status put_or_fail(std::string_view json) { return put(json) ? Status::kMore : Status::kInvalid; }

  Status in_name(char c) {
    if (c == '(' && !name_.empty()) return enter(State::kBeforeKey);
    if (!is_identifier_byte(c) || (name_.empty() && !is_letter(c))) return Status::kInvalid;
    name_ += c;
    return Status::kMore;
  }

  Status in_key(char c) {
    if (is_identifier_byte(c)) {
      key_ += c;
      return Status::kMore;
    }
    if (c != '=') return is_space(c) ? Status::kMore : Status::kInvalid;
    if (begun_ ? !put(",") : !begin(name_) || !put("{")) return Status::kInvalid;
    std::string member;
    json::append_string(member, key_);
    state_ = State::kValue;
    return put_or_fail(member + ":");
  }

  Status in_value(char c) {
    if (is_letter(c) && !number_) {
      word_ += c;
      return Status::kMore;
    }
    if (!word_.empty()) {
      const std::string_view word = json_word(word_);
      word_.clear();
      if (word.empty() || !put_item(word)) return Status::kInvalid;
    }
    number_ = is_digit(c) || c == '-' || (number_ && (c == '.' || c == '+' || c == 'e' || c == 'E'));
    if (number_) return put_item(std::string_view(&c, 1)) ? Status::kMore : Status::kInvalid;
    switch (c) {
      case '"':
      case '\'':
        quote_ = c;
        state_ = State::kString;
        return put_item("\"") ? Status::kMore : Status::kInvalid;
      case '[':
      case '(':
      case '{':
        open_ += c == '[' ? ']' : c == '(' ? ')' : '}';
        return put_item(c == '{' ? "{" : "[") ? Status::kMore : Status::kInvalid;
      case ',':
        if (open_.empty()) return enter(State::kBeforeKey);
        comma_ = true;
        return Status::kMore;
      case ':':
        return put_or_fail(":");
      default:
        if (is_space(c)) return comma_ ? Status::kMore : put_or_fail(" ");
        return end_container(c);
    }
  }

  // Python allows a comma behind the last item: it is written with the next one only.
  bool put_item(std::string_view json) {
    if (comma_ && !put(",")) return false;
    comma_ = false;
    return put(json);
  }

  Status end_container(char c) {
    if (open_.empty()) return c == ')' ? end() : Status::kInvalid;
    if (c != open_.back()) return Status::kInvalid;
    open_.pop_back();
    comma_ = false;
    return put_or_fail(c == '}' ? "}" : "]");
  }

  Status end() {
    if (!begun_ && (!begin(name_) || !put("{"))) return Status::kInvalid;
    return put("}") ? Status::kComplete : Status::kInvalid;
  }

  Status in_string(char c) {
    if (digits_ > 0) {
      --digits_;
      return put_or_fail(std::string_view(&c, 1));
    }
    if (c == '\\') return enter(State::kEscape);
    if (c == quote_) {
      state_ = State::kValue;
      return put_or_fail("\"");
    }
    return put_or_fail(c == '"' ? std::string_view("\\\"") : std::string_view(&c, 1));
  }

  // Of Python's escapes, what JSON does not know is written as its character; \q is a backslash and a q.
  Status in_escape(char c) {
    state_ = State::kString;
    switch (c) {
      case '\n':
        return Status::kMore;
      case '\'':
        return put_or_fail("'");
      case 'x':
        digits_ = 2;
        return put_or_fail("\\u00");
      case 'u':
        digits_ = 4;
        return put_or_fail("\\u");
      case '"':
      case '\\':
      case 'b':
      case 'f':
      case 'n':
      case 'r':
      case 't':
        return put_or_fail(std::string{'\\', c});
      default:
        return put_or_fail(std::string{'\\', '\\', c});
    }
  }

  State state_ = State::kName;
  std::string name_;
  std::string key_;
  std::string word_;  // True, False or None so far
  std::string open_;  // what closes the containers that are open
  std::string settled_;
  JsonScanner scanner_;
  int digits_ = 0;  // of \x or \u still to come
  char quote_ = '"';
  bool number_ = false;
  bool comma_ = false;  // between items, not written yet
  bool complete_ = false;
};

}  // namespace

std::unique_ptr<CallReader> pythonic_call_reader(CallWriter& writer, const AnswerSyntax& syntax, bool bare) {
  return std::make_unique<PythonicCallReader>(writer, syntax, bare);
}

}  // namespace braid::net
