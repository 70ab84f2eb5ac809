#include "net/generation/parser/call_reader.h"
#include "net/generation/parser/characters.h"
#include "net/json/parse.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace braid::net {
namespace {

std::optional<std::string> text_of(std::string json) {
  Result<Value> value = json::parse(json);
  if (!value) return std::nullopt;
  auto* text = value->get_if<std::string>();
  return text != nullptr ? std::optional(std::move(*text)) : std::nullopt;
}

// Arguments that are not written as an object: nothing, or a string that holds one.
std::optional<std::string> object_in(const std::string& json) {
  if (json == "null") return "{}";
  std::optional<std::string> text = text_of(json);
  if (!text) return std::nullopt;
  std::string copy = *text;
  const Result<Value> value = json::parse(copy);
  return value && value->get_if<ValueDict>() != nullptr ? text : std::nullopt;
}

class JsonCallReader final : public CallReader {
 public:
  JsonCallReader(CallWriter& writer, const AnswerSyntax& syntax, bool bare) : CallReader(writer, syntax, bare) {}

  Status feed(char c) override {
    if (state_ == State::kInKey || state_ == State::kInValue) return in_value(c);
    if (is_space(c)) return Status::kMore;
    switch (state_) {
      case State::kOpen:
        return c == '{' ? enter(State::kFirstKey) : Status::kInvalid;
      case State::kFirstKey:
      case State::kNextKey:
        if (c == '}' && state_ == State::kFirstKey) return end();
        if (c != '"') return Status::kInvalid;
        return begin_value(State::kInKey, c);
      case State::kColon:
        return c == ':' ? enter(State::kValue) : Status::kInvalid;
      case State::kValue:
        if (!choose_member(c)) return Status::kInvalid;
        return begin_value(State::kInValue, c);
      case State::kAfter:
        if (c == ',') return enter(State::kNextKey);
        return c == '}' ? end() : Status::kInvalid;
      case State::kInKey:
      case State::kInValue:
        break;  // above
    }
    return Status::kInvalid;
  }

  bool names_function() const override {
    return !name_.empty() || member_ == Member::kArguments ||
           (state_ == State::kInValue && member_ == Member::kName && begins_declared(std::string_view(buffer_).substr(1)));
  }

  void close() override {
    if (!streaming_) return;
    std::string rest;
    scanner_.close(rest);
    writer_.arguments(rest);
    streaming_ = false;
  }

 private:
  enum class State { kOpen, kFirstKey, kNextKey, kInKey, kColon, kValue, kInValue, kAfter };
  enum class Member { kName, kArguments, kOther };

  Status enter(State state) {
    state_ = state;
    return Status::kMore;
  }

  Status begin_value(State state, char c) {
    state_ = state;
    scanner_ = JsonScanner();
    buffer_.clear();
    return in_value(c);
  }

  Status in_value(char c) {
    const JsonScanner::Status status = scanner_.feed(c, buffer_);
    if (status == JsonScanner::Status::kInvalid) return Status::kInvalid;
    if (streaming_) {
      writer_.arguments(buffer_);
      buffer_.clear();
    }
    if (status == JsonScanner::Status::kMore) return Status::kMore;
    if (state_ == State::kInKey) return enter(State::kColon);
    if (!end_value()) return Status::kInvalid;
    state_ = State::kAfter;
    return status == JsonScanner::Status::kEnded ? feed(c) : Status::kMore;
  }

  // What the member is whose name is in the buffer and whose value begins with `c`.
  bool choose_member(char c) {
    static constexpr std::array<std::string_view, 3> kNames = {R"("name")", R"("function")", R"("tool_name")"};
    static constexpr std::array<std::string_view, 2> kArguments = {R"("arguments")", R"("parameters")"};
    static constexpr std::array<std::string_view, 3> kHarmless = {R"("type")", R"("id")", R"("tool_call_id")"};
    const auto is_one_of = [this](const auto& keys) { return std::find(keys.begin(), keys.end(), buffer_) != keys.end(); };
    member_ = Member::kOther;
    if (begun_) return true;
    if (is_one_of(kNames) && c == '"') {
      member_ = Member::kName;
    } else if (is_one_of(kArguments)) {
      member_ = Member::kArguments;
      if (c == '{' && !name_.empty()) streaming_ = begin(name_);
      return c != '{' || name_.empty() || streaming_;
    } else {
      return !bare_ || is_one_of(kHarmless);
    }
    return true;
  }

  bool end_value() {
    if (std::exchange(streaming_, false) || member_ == Member::kOther) return true;
    if (member_ == Member::kName) {
      std::optional<std::string> name = text_of(buffer_);
      if (!name || name->empty() || (bare_ && !is_declared(*name))) return false;
      name_ = std::move(*name);
    } else {
      arguments_ = buffer_.front() == '{' ? buffer_ : object_in(buffer_);
      if (!arguments_) return false;
    }
    return name_.empty() || !arguments_ || write(*arguments_);
  }

  // At the end of the object. A call without arguments has none, but a bare object with a name only is no call.
  Status end() {
    if (begun_) return Status::kComplete;
    return !name_.empty() && !bare_ && write("{}") ? Status::kComplete : Status::kInvalid;
  }

  bool write(std::string_view arguments) {
    if (!begin(name_)) return false;
    writer_.arguments(arguments);
    return true;
  }

  State state_ = State::kOpen;
  Member member_ = Member::kOther;
  JsonScanner scanner_;
  std::string buffer_;  // the member's name or value
  std::string name_;
  std::optional<std::string> arguments_;  // those that came before the name, or as a string
  bool streaming_ = false;                // the value is written as it comes
};

}  // namespace

std::unique_ptr<CallReader> json_call_reader(CallWriter& writer, const AnswerSyntax& syntax, bool bare) {
  return std::make_unique<JsonCallReader>(writer, syntax, bare);
}

}  // namespace braid::net
