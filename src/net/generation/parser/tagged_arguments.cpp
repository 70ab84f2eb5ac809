#include "net/generation/parser/tagged_arguments.h"

#include "net/generation/parser/characters.h"
#include "net/generation/parser/json_scanner.h"
#include "net/json/write.h"

#include <optional>
#include <string>

namespace braid::net {
namespace {

constexpr std::string_view kParameter = "parameter=";
constexpr std::string_view kKeyEnd = "</arg_key>";
constexpr std::size_t kMaxTagBytes = 256;

// The text, if it is one JSON value; control characters in its strings are escaped.
std::optional<std::string> as_json(std::string_view text) {
  JsonScanner scanner;
  std::string json;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const JsonScanner::Status status = scanner.feed(text[i], json);
    if (status == JsonScanner::Status::kComplete && i + 1 == text.size()) return json;
    if (status != JsonScanner::Status::kMore) return std::nullopt;
  }
  // A number has no end of its own.
  if (text.empty() || scanner.feed(' ', json) != JsonScanner::Status::kEnded) return std::nullopt;
  return json;
}

// A value stands on lines of its own: their breaks are not part of it.
std::string_view without_line_breaks(std::string_view text) {
  if (text.starts_with('\n')) text.remove_prefix(1);
  if (text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

}  // namespace

TaggedArguments::Status TaggedArguments::feed(char c, std::string& out) {
  switch (state_) {
    case State::kBetween:
      if (kSpace.find(c) != std::string_view::npos) return Status::kMore;
      if (c != '<') return Status::kInvalid;
      tag_.clear();
      state_ = State::kTag;
      return Status::kMore;
    case State::kTag:
      if (c == '>') return end_tag(out);
      tag_ += c;
      return tag_.size() <= kMaxTagBytes ? Status::kMore : Status::kInvalid;
    case State::kKey:
      key_ += c;
      if (!key_.ends_with(kKeyEnd)) return key_.size() <= kMaxTagBytes ? Status::kMore : Status::kInvalid;
      key_.resize(key_.size() - kKeyEnd.size());
      has_key_ = true;
      state_ = State::kBetween;
      return Status::kMore;
    case State::kValue:
      value_ += c;
      if (!value_.ends_with(value_end_)) return Status::kMore;
      value_.resize(value_.size() - value_end_.size());
      write(out);
      state_ = State::kBetween;
      return Status::kMore;
  }
  return Status::kInvalid;
}

TaggedArguments::Status TaggedArguments::end_tag(std::string& out) {
  if (has_key_ != (tag_ == "arg_value")) return Status::kInvalid;
  value_.clear();
  if (has_key_) {
    has_key_ = false;
    value_end_ = "</arg_value>";
    state_ = State::kValue;
  } else if (tag_.starts_with(kParameter)) {
    key_ = tag_.substr(kParameter.size());
    value_end_ = "</parameter>";
    state_ = State::kValue;
  } else if (tag_ == "arg_key") {
    key_.clear();
    state_ = State::kKey;
  } else if (tag_ == "/function" || tag_ == "/tool_call") {
    close(out);
    return Status::kComplete;
  } else {
    return Status::kInvalid;
  }
  return Status::kMore;
}

void TaggedArguments::write(std::string& out) {
  const std::string_view value = without_line_breaks(value_);
  out += opened_ ? ',' : '{';
  opened_ = true;
  json::append_string(out, key_);
  out += ':';
  const std::optional<std::string> typed = is_text_(key_, value) ? std::nullopt : as_json(value);
  if (typed) {
    out += *typed;
  } else {
    json::append_string(out, value);
  }
}

void TaggedArguments::close(std::string& out) {
  if (closed_) return;
  out += opened_ ? "}" : "{}";
  closed_ = true;
}

}  // namespace braid::net
