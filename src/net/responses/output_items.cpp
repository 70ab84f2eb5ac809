#include "net/responses/output_items.h"

#include "net/generation/logprob_entries.h"
#include "net/json/write.h"

#include <fmt/format.h>
#include <iterator>
#include <utility>

namespace braid::net::responses {
namespace {

// What an item of one kind is called: at the beginning of its id, and in its events.
struct Words {
  std::string_view prefix;
  std::string_view event;
};

Words words_of(OutputItems::Kind kind) {
  switch (kind) {
    case OutputItems::Kind::kMessage:
      return {"msg", "response.output_text"};
    case OutputItems::Kind::kReasoning:
      return {"rs", "response.reasoning_text"};
    case OutputItems::Kind::kFunctionCall:
      return {"fc", "response.function_call_arguments"};
  }
  return {};
}

}  // namespace

OutputItems::OutputItems(std::string_view response_id, const TextCodec& codec, bool events, bool logprobs)
    : suffix_(response_id.substr(response_id.find('-') + 1)), codec_(codec), events_(events), logprobs_(logprobs) {}

void OutputItems::add(std::string& out, const Delta& delta, const DeltaTokens& tokens) {
  if (const auto* text = std::get_if<TextDelta>(&delta)) {
    grow(out, open(out, Kind::kMessage), text->text, tokens);
  } else if (const auto* thought = std::get_if<ReasoningDelta>(&delta)) {
    grow(out, open(out, Kind::kReasoning), thought->text, tokens);
  } else if (const auto* begin = std::get_if<ToolCallBegin>(&delta)) {
    close(out, true);
    items_.push_back({Kind::kFunctionCall, "", "", begin->id, begin->name, ""});
    open(out, Kind::kFunctionCall);
  } else {
    grow(out, items_.back(), std::get<ToolCallArguments>(delta).text, tokens);
  }
}

// The open item if it is of this kind, or a new one. A call's item has been put at the end by the caller.
OutputItems::Item& OutputItems::open(std::string& out, Kind kind) {
  if (is_open_ && items_.back().kind == kind) return items_.back();
  close(out, true);
  if (kind != Kind::kFunctionCall) items_.push_back({kind, "", "", "", "", ""});
  Item& item = items_.back();
  item.id = fmt::format("{}_{}_{}", words_of(kind).prefix, suffix_, items_.size() - 1);
  is_open_ = true;
  if (!events_) return item;
  std::string members = fmt::format(R"(,"output_index":{},"item":)", items_.size() - 1);
  append_item(members, item);
  append_event(out, "response.output_item.added", members);
  if (kind == Kind::kFunctionCall) return item;
  members = content_place(item) + R"(,"part":)";
  append_part(members, item);
  append_event(out, "response.content_part.added", members);
  return item;
}

void OutputItems::add_end(const DeltaTokens& rest) {
  if (is_open_) add_logprobs(items_.back(), rest);
}

std::string OutputItems::add_logprobs(Item& item, const DeltaTokens& tokens) const {
  std::string logprobs;
  if (!logprobs_ || item.kind != Kind::kMessage) return logprobs;
  append_logprob_entries(logprobs, codec_, tokens.scored);
  if (!item.logprobs.empty() && !logprobs.empty()) item.logprobs += ',';
  item.logprobs += logprobs;
  return logprobs;
}

void OutputItems::grow(std::string& out, Item& item, std::string_view text, const DeltaTokens& tokens) {
  item.text += text;
  const std::string logprobs = add_logprobs(item, tokens);
  if (!events_) return;
  std::string members = item.kind == Kind::kFunctionCall ? place(item) : content_place(item);
  members += R"(,"delta":)" + json::quoted(text);
  if (item.kind == Kind::kMessage) members += R"(,"logprobs":[)" + logprobs + "]";
  append_event(out, fmt::format("{}.delta", words_of(item.kind).event), members);
}

void OutputItems::close(std::string& out, bool complete) {
  if (!is_open_) return;
  is_open_ = false;
  Item& item = items_.back();
  if (item.kind == Kind::kFunctionCall && item.text.empty()) item.text = "{}";
  item.status = complete ? "completed" : "incomplete";
  if (!events_) return;
  std::string members = item.kind == Kind::kFunctionCall ? place(item) : content_place(item);
  if (item.kind == Kind::kFunctionCall) {
    members += R"(,"name":)" + json::quoted(item.name) + R"(,"arguments":)" + json::quoted(item.text);
  } else {
    members += R"(,"text":)" + json::quoted(item.text);
    if (item.kind == Kind::kMessage) members += R"(,"logprobs":[)" + item.logprobs + "]";
  }
  append_event(out, fmt::format("{}.done", words_of(item.kind).event), members);
  if (item.kind != Kind::kFunctionCall) {
    members = content_place(item) + R"(,"part":)";
    append_part(members, item);
    append_event(out, "response.content_part.done", members);
  }
  members = fmt::format(R"(,"output_index":{},"item":)", items_.size() - 1);
  append_item(members, item);
  append_event(out, "response.output_item.done", members);
}

void OutputItems::append_event(std::string& out, std::string_view type, std::string_view members) {
  fmt::format_to(std::back_inserter(out), "event: {0}\ndata: {{\"type\":\"{0}\",\"sequence_number\":{1}{2}}}\n\n", type, sequence_++,
                 members);
}

std::string OutputItems::place(const Item& item) const {
  return fmt::format(R"(,"item_id":"{}","output_index":{})", item.id, items_.size() - 1);
}

std::string OutputItems::content_place(const Item& item) const { return place(item) + R"(,"content_index":0)"; }

void OutputItems::append_part(std::string& out, const Item& item) const {
  if (item.kind == Kind::kReasoning) {
    out += R"({"type":"reasoning_text","text":)" + json::quoted(item.text) + "}";
  } else {
    out += R"({"type":"output_text","text":)" + json::quoted(item.text) + R"(,"annotations":[],"logprobs":[)" + item.logprobs + "]}";
  }
}

// While an item is open and empty, its content is empty too: the part has not been added yet.
void OutputItems::append_item(std::string& out, const Item& item) const {
  fmt::format_to(std::back_inserter(out), R"({{"id":"{}","status":"{}",)", item.id, item.status);
  if (item.kind == Kind::kFunctionCall) {
    out += R"("type":"function_call","call_id":)" + json::quoted(item.call_id) + R"(,"name":)" + json::quoted(item.name) +
           R"(,"arguments":)" + json::quoted(item.text) + "}";
    return;
  }
  out +=
      item.kind == Kind::kMessage ? R"("type":"message","role":"assistant","content":[)" : R"("type":"reasoning","summary":[],"content":[)";
  if (item.status != "in_progress") append_part(out, item);
  out += "]}";
}

void OutputItems::append_output(std::string& out) const {
  out += '[';
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (i > 0) out += ',';
    append_item(out, items_[i]);
  }
  out += ']';
}

Value OutputItems::as_message() const {
  std::string text;
  std::string reasoning;
  ValueList calls;
  for (const Item& item : items_) {
    if (item.kind == Kind::kMessage) text += item.text;
    if (item.kind == Kind::kReasoning) reasoning += item.text;
    if (item.kind != Kind::kFunctionCall) continue;
    ValueDict function{{"name", item.name}, {"arguments", item.text}};
    calls.emplace_back(ValueDict{{"id", item.call_id}, {"type", "function"}, {"function", std::move(function)}});
  }
  ValueDict message{{"role", "assistant"}, {"content", std::move(text)}};
  if (!reasoning.empty()) message.emplace_back("reasoning_content", std::move(reasoning));
  if (!calls.empty()) message.emplace_back("tool_calls", std::move(calls));
  return message;
}

}  // namespace braid::net::responses
