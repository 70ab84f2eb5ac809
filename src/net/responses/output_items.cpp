#include "net/responses/output_items.h"

#include "net/generation/logprob_entries.h"
#include "net/json/write.h"
#include "net/wish/custom_tool.h"
#include "net/wish/seal.h"

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
    case OutputItems::Kind::kCustomCall:
      return {"ctc", "response.custom_tool_call_input"};
  }
  return {};
}

bool is_call(OutputItems::Kind kind) { return kind == OutputItems::Kind::kFunctionCall || kind == OutputItems::Kind::kCustomCall; }

}  // namespace

OutputItems::OutputItems(std::string_view response_id, const TextCodec& codec, const ClientTools& tools, const Wanted& wanted)
    : suffix_(response_id.substr(response_id.find('_') + 1)), codec_(codec), tools_(tools), wanted_(wanted) {}

void OutputItems::add(std::string& out, const Delta& delta, const DeltaTokens& tokens) {
  if (const auto* text = std::get_if<TextDelta>(&delta)) {
    grow(out, open(out, Kind::kMessage), text->text, tokens);
  } else if (const auto* thought = std::get_if<ReasoningDelta>(&delta)) {
    grow(out, open(out, Kind::kReasoning), thought->text, tokens);
  } else if (const auto* begin = std::get_if<ToolCallBegin>(&delta)) {
    begin_call(out, *begin);
  } else {
    const std::string& arguments = std::get<ToolCallArguments>(delta).text;
    Item& item = items_.back();
    if (item.kind == Kind::kFunctionCall) return grow(out, item, arguments, tokens);
    if (const std::string input = item.input.feed(arguments); !input.empty()) grow(out, item, input, tokens);
  }
}

void OutputItems::begin_call(std::string& out, const ToolCallBegin& begin) {
  close(out, true);
  const auto known = tools_.find(begin.name);
  const ClientTool* tool = known != tools_.end() ? &known->second : nullptr;
  const Kind kind = tool != nullptr && tool->is_custom ? Kind::kCustomCall : Kind::kFunctionCall;
  items_.push_back({.kind = kind, .call_id = begin.id, .function = begin.name, .tool = tool});
  open(out, kind);
}

// The open item if it is of this kind, or a new one. A call's item has been put at the end by the caller.
OutputItems::Item& OutputItems::open(std::string& out, Kind kind) {
  if (is_open_ && items_.back().kind == kind) return items_.back();
  close(out, true);
  if (!is_call(kind)) items_.push_back({.kind = kind});
  Item& item = items_.back();
  item.id = fmt::format("{}_{}_{}", words_of(kind).prefix, suffix_, items_.size() - 1);
  is_open_ = true;
  if (!wanted_.events) return item;
  std::string members = fmt::format(R"(,"output_index":{},"item":)", items_.size() - 1);
  append_item(members, item);
  append_event(out, "response.output_item.added", members);
  if (is_call(kind)) return item;
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
  if (!wanted_.logprobs || item.kind != Kind::kMessage) return logprobs;
  append_logprob_entries(logprobs, codec_, tokens.scored);
  if (!item.logprobs.empty() && !logprobs.empty()) item.logprobs += ',';
  item.logprobs += logprobs;
  return logprobs;
}

void OutputItems::grow(std::string& out, Item& item, std::string_view text, const DeltaTokens& tokens) {
  item.text += text;
  const std::string logprobs = add_logprobs(item, tokens);
  if (!wanted_.events) return;
  std::string members = is_call(item.kind) ? place(item) : content_place(item);
  members += R"(,"delta":)" + json::quoted(text);
  if (item.kind == Kind::kMessage) members += R"(,"logprobs":[)" + logprobs + "]";
  append_event(out, fmt::format("{}.delta", words_of(item.kind).event), members);
}

void OutputItems::close(std::string& out, bool complete) {
  if (!is_open_) return;
  is_open_ = false;
  Item& item = items_.back();
  if (item.kind == Kind::kFunctionCall && item.text.empty()) item.text = "{}";
  if (item.kind == Kind::kCustomCall)
    if (const std::string rest = item.input.finish(); !rest.empty()) grow(out, item, rest, {});
  item.status = complete ? "completed" : "incomplete";
  if (!wanted_.events) return;
  std::string members = is_call(item.kind) ? place(item) : content_place(item);
  if (item.kind == Kind::kFunctionCall) {
    members += R"(,"name":)" + json::quoted(name_of(item)) + R"(,"arguments":)" + json::quoted(item.text);
  } else if (item.kind == Kind::kCustomCall) {
    members += R"(,"input":)" + json::quoted(item.text);
  } else {
    members += R"(,"text":)" + json::quoted(item.text);
    if (item.kind == Kind::kMessage) members += R"(,"logprobs":[)" + item.logprobs + "]";
  }
  append_event(out, fmt::format("{}.done", words_of(item.kind).event), members);
  if (!is_call(item.kind)) {
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
  if (is_call(item.kind)) return append_call(out, item);
  out +=
      item.kind == Kind::kMessage ? R"("type":"message","role":"assistant","content":[)" : R"("type":"reasoning","summary":[],"content":[)";
  if (item.status != "in_progress") append_part(out, item);
  out += ']';
  if (item.kind == Kind::kReasoning && wanted_.sealed_reasoning && item.status != "in_progress")
    out += R"(,"encrypted_content":")" + wish::sealed(item.text) + '"';
  out += '}';
}

const std::string& OutputItems::name_of(const Item& item) { return item.tool != nullptr ? item.tool->name : item.function; }

void OutputItems::append_call(std::string& out, const Item& item) const {
  const bool is_custom = item.kind == Kind::kCustomCall;
  fmt::format_to(std::back_inserter(out), R"("type":"{}","call_id":{},"name":{},"{}":{})", is_custom ? "custom_tool_call" : "function_call",
                 json::quoted(item.call_id), json::quoted(name_of(item)), is_custom ? "input" : "arguments", json::quoted(item.text));
  if (item.tool != nullptr && !item.tool->space.empty()) out += R"(,"namespace":)" + json::quoted(item.tool->space);
  out += '}';
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
    if (!is_call(item.kind)) continue;
    ValueDict function{{"name", item.function},
                       {"arguments", item.kind == Kind::kCustomCall ? wish::arguments_of_input(item.text) : Value(item.text)}};
    calls.emplace_back(ValueDict{{"id", item.call_id}, {"type", "function"}, {"function", std::move(function)}});
  }
  ValueDict message{{"role", "assistant"}, {"content", std::move(text)}};
  if (!reasoning.empty()) message.emplace_back("reasoning_content", std::move(reasoning));
  if (!calls.empty()) message.emplace_back("tool_calls", std::move(calls));
  return message;
}

}  // namespace braid::net::responses
