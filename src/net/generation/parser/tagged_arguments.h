// Arguments that a model writes as tags, as JSON.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace braid::net {

// <parameter=KEY>VALUE</parameter> … </function>, as Qwen3-Coder writes them, or <arg_key>KEY</arg_key><arg_value>VALUE</arg_value>
// …
// </tool_call>, as GLM does. A value comes out when it is complete: only then it is known to be a number or a text.
class TaggedArguments {
 public:
  enum class Status { kMore, kComplete, kInvalid };

  // `is_text`: whether this value of the argument is a string by its declaration; others are JSON where they can be.
  using IsText = std::function<bool(std::string_view key, std::string_view value)>;
  explicit TaggedArguments(IsText is_text) : is_text_(std::move(is_text)) {}

  // The first byte is that of the first tag. Appends JSON to `out`; nothing before the first argument or the end is complete.
  Status feed(char c, std::string& out);

  // Appends what is missing of the object that feed() began.
  void close(std::string& out);

 private:
  enum class State { kBetween, kTag, kKey, kValue };

  Status end_tag(std::string& out);
  void write(std::string& out);

  IsText is_text_;
  State state_ = State::kBetween;
  std::string tag_;
  std::string key_;
  std::string value_;      // and what may be its end
  std::string value_end_;  // of the value under way
  bool has_key_ = false;   // <arg_value> is to follow
  bool opened_ = false;
  bool closed_ = false;
};

}  // namespace braid::net
