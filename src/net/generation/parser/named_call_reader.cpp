#include "net/generation/parser/call_reader.h"
#include "net/generation/parser/characters.h"
#include "net/generation/parser/tagged_arguments.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace braid::net {
namespace {

constexpr std::size_t kMaxHeaderBytes = 256;
constexpr std::string_view kCallId = "[CALL_ID]";  // Mistral writes it and an id before [ARGS]

bool is_name_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_-.:/").find(c) != std::string_view::npos;
}

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

// NAME, name_end, {…}: everything before the brace is the header.
class NamedCallReader final : public CallReader {
 public:
  NamedCallReader(CallWriter& writer, const AnswerSyntax& syntax) : CallReader(writer, syntax, false) {}

  Status feed(char c) override {
    if (tagged_) return in_tags(c);
    if (!begun_) {
      const std::string_view text = trimmed(header_);
      const std::string_view written = text.substr(0, name_length(text));
      if (c == '<' && is_before_tags(trimmed(text.substr(written.size())))) return begin_tags(function_name(written), c);
      if (c != '{') return in_header(c);
      const std::string name = function_name(written);
      if (name.empty() || !begin(name)) return Status::kInvalid;
    }
    std::string settled;
    const JsonScanner::Status status = scanner_.feed(c, settled);
    writer_.arguments(settled);
    complete_ = status == JsonScanner::Status::kComplete;
    if (complete_) return Status::kComplete;
    return status == JsonScanner::Status::kInvalid ? Status::kInvalid : Status::kMore;
  }

  void close() override {
    if (complete_) return;
    std::string rest;
    if (tagged_) {
      tagged_->close(rest);
    } else {
      scanner_.close(rest);
    }
    writer_.arguments(rest);
  }

 private:
  static std::size_t name_length(std::string_view text) {
    return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_name_byte) - text.begin());
  }

  // Anything but a name and (the beginning of) its separator shows that this is no call.
  Status in_header(char c) {
    header_ += c;
    if (header_.size() > kMaxHeaderBytes) return invalid_header();
    const std::string_view text = trimmed(header_);
    const std::string_view rest = trimmed(text.substr(name_length(text)));
    if (rest.empty()) return Status::kMore;
    const auto begins_with_rest = [rest](const std::string& end) { return end.starts_with(rest); };
    const auto& ends = syntax_.calls->name_end;
    const bool has_name = name_length(text) > 0;
    const bool fits = std::any_of(ends.begin(), ends.end(), begins_with_rest) || kCallId.starts_with(rest) || rest.starts_with(kCallId);
    return has_name && fits ? Status::kMore : invalid_header();
  }

  Status invalid_header() {
    header_.pop_back();
    return Status::kInvalid;
  }

  // Whether tags may follow the name and `separator`: that is all of a name_end that is none itself.
  bool is_before_tags(std::string_view separator) const {
    if (header_.empty() || name_length(trimmed(header_)) == 0) return false;
    const auto& ends = syntax_.calls->name_end;
    return std::any_of(ends.begin(), ends.end(), [separator](const std::string& end) {
      return trimmed(end) == separator && (separator.empty() || separator == ">");
    });
  }

  Status begin_tags(std::string name, char c) {
    name_ = std::move(name);
    tagged_.emplace([this](std::string_view key, std::string_view value) {
      const auto is_named = [&](const auto& text) { return text.first == name_ && text.second == key; };
      return std::any_of(syntax_.texts.begin(), syntax_.texts.end(), is_named) ||
             (value != "null" && std::any_of(syntax_.optional_texts.begin(), syntax_.optional_texts.end(), is_named));
    });
    return in_tags(c);
  }

  Status in_tags(char c) {
    std::string settled;
    const TaggedArguments::Status status = tagged_->feed(c, settled);
    if (!settled.empty() && !begun_ && !begin(name_)) return Status::kInvalid;
    writer_.arguments(settled);
    complete_ = status == TaggedArguments::Status::kComplete;
    if (complete_) return Status::kComplete;
    return status == TaggedArguments::Status::kInvalid ? Status::kInvalid : Status::kMore;
  }

  // Kimi writes functions.NAME:0.
  std::string function_name(std::string_view name) const {
    constexpr std::string_view kPrefix = "functions.";
    const auto& declared = syntax_.functions;
    if (std::find(declared.begin(), declared.end(), name) != declared.end() || !name.starts_with(kPrefix)) return std::string(name);
    name.remove_prefix(kPrefix.size());
    return std::string(name.substr(0, name.find(':')));
  }

  std::string header_;
  std::string name_;  // with tags
  std::optional<TaggedArguments> tagged_;
  JsonScanner scanner_;
  bool complete_ = false;
};

}  // namespace

std::unique_ptr<CallReader> named_call_reader(CallWriter& writer, const AnswerSyntax& syntax) {
  return std::make_unique<NamedCallReader>(writer, syntax);
}

}  // namespace braid::net
