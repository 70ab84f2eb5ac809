// The output of a response: items that open, grow and close, and the events that tell of it.
#pragma once

#include "braid/text_codec.h"
#include "braid/value.h"
#include "net/generation/answer_event.h"
#include "net/generation/custom_input.h"
#include "net/responses/tools.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace braid::net::responses {

// Events are appended to a stream in the order that the SDK expects: output_item.added, content_part.added, deltas, done, content_part.done,
// output_item.done. Numbers events from 0.
class OutputItems {
 public:
  enum class Kind { kMessage, kReasoning, kFunctionCall, kCustomCall };

  struct Wanted {
    bool events = false;
    bool logprobs = false;          // of text
    bool sealed_reasoning = false;  // so that the client can give it back
  };

  // Codec and tools outlive the items.
  OutputItems(std::string_view response_id, const TextCodec& codec, const ClientTools& tools, const Wanted& wanted);

  void add(std::string& out, const Delta& delta, const DeltaTokens& tokens);
  // Tokens at the end that gave no text: the one that ends the answer, or a stop string's.
  void add_end(const DeltaTokens& rest);
  // Closes the open item. `complete`: the model came to its end.
  void close(std::string& out, bool complete);

  // "event: …\ndata: {"type":…,"sequence_number":…<members>}\n\n"; `members` begins with a comma.
  void append_event(std::string& out, std::string_view type, std::string_view members);

  // [item, …] as in the response object.
  void append_output(std::string& out) const;
  // The answer as one chat message, for the conversation.
  Value as_message() const;

 private:
  struct Item {
    Kind kind;
    std::string id = {};
    std::string text = {};  // or a call's arguments, or a custom tool's input
    std::string call_id = {};
    std::string function = {};         // as the model knows it
    const ClientTool* tool = nullptr;  // as the client does; null: by the same name
    CustomInput input = {};            // of a custom tool
    std::string logprobs = {};         // of the text: JSON values, comma-separated
    std::string_view status = "in_progress";
  };

  void begin_call(std::string& out, const ToolCallBegin& begin);
  Item& open(std::string& out, Kind kind);
  void grow(std::string& out, Item& item, std::string_view text, const DeltaTokens& tokens);
  std::string add_logprobs(Item& item, const DeltaTokens& tokens) const;  // returns what it adds
  void append_item(std::string& out, const Item& item) const;
  void append_part(std::string& out, const Item& item) const;
  static const std::string& name_of(const Item& item);  // to the client
  void append_call(std::string& out, const Item& item) const;
  std::string place(const Item& item) const;
  std::string content_place(const Item& item) const;

  std::string suffix_;  // of item ids
  const TextCodec& codec_;
  const ClientTools& tools_;
  Wanted wanted_;
  std::vector<Item> items_;
  bool is_open_ = false;  // the last item
  std::uint64_t sequence_ = 0;
};

}  // namespace braid::net::responses
