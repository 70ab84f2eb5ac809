#include "net/anthropic/context_edits.h"

#include "net/json/fields.h"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <initializer_list>
#include <limits>
#include <map>
#include <utility>

namespace braid::net::anthropic {
namespace {

using json::at_index;
using json::at_key;

constexpr std::string_view kToolUses = "clear_tool_uses_20250919";
constexpr std::string_view kThinking = "clear_thinking_20251015";
constexpr std::int64_t kDefaultTriggerTokens = 100'000;
constexpr char kCleared[] = "[This result was cleared to save space.]";

// {"type":…,"value":…}
struct Amount {
  std::string type;
  std::int64_t value = 0;
};

// `types` are those that it may have.
Result<std::optional<Amount>> read_amount(const Value& edit, std::string_view name, const std::string& path,
                                          std::initializer_list<std::string_view> types) {
  const Value* value = edit.find(name);
  if (value == nullptr || value->is_null()) return std::optional<Amount>();
  const std::string amount_path = at_key(path, name);
  const Value* type = value->find("type");
  const Value* number = value->find("value");
  const auto* kind = type != nullptr ? type->get_if<std::string>() : nullptr;
  if (kind == nullptr || number == nullptr)
    return invalid_argument(fmt::format("'{}' must be an object with 'type' and 'value'", amount_path), amount_path);
  if (std::ranges::find(types, *kind) == types.end())
    return invalid_argument(fmt::format("'{}' must be '{}'", at_key(amount_path, "type"), fmt::join(types, "' or '")),
                            at_key(amount_path, "type"));
  const Result<std::int64_t> count = json::read_integer(*number, at_key(amount_path, "value"), 0);
  if (!count) return count.error();
  return std::optional(Amount{*kind, *count});
}

Result<std::vector<std::string>> read_names(const Value& value, const std::string& path) {
  const auto* list = value.get_if<ValueList>();
  if (list == nullptr) return json::wrong_type(path, "an array of strings", value);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < list->size(); ++i) {
    Result<std::string> name = json::read_string((*list)[i], at_index(path, i));
    if (!name) return name.error();
    names.push_back(std::move(*name));
  }
  return names;
}

Result<ContextEdit> read_tool_uses(const Value& value, const std::string& path) {
  ClearToolUses edit;
  const auto trigger = read_amount(value, "trigger", path, {"input_tokens", "tool_uses"});
  const auto keep = read_amount(value, "keep", path, {"tool_uses"});
  const auto at_least = read_amount(value, "clear_at_least", path, {"input_tokens"});
  for (const auto* amount : {&trigger, &keep, &at_least})
    if (!*amount) return amount->error();
  edit.trigger_tokens = kDefaultTriggerTokens;
  if (*trigger && (*trigger)->type == "tool_uses") {
    edit.trigger_tokens.reset();
    edit.trigger_uses = (*trigger)->value;
  } else if (*trigger) {
    edit.trigger_tokens = (*trigger)->value;
  }
  if (*keep) edit.keep = (*keep)->value;
  if (*at_least) edit.at_least_tokens = (*at_least)->value;
  if (const Value* spared = value.find("exclude_tools"); spared != nullptr && !spared->is_null()) {
    Result<std::vector<std::string>> names = read_names(*spared, at_key(path, "exclude_tools"));
    if (!names) return names.error();
    edit.spared = std::move(*names);
  }
  const Value* inputs = value.find("clear_tool_inputs");
  if (inputs == nullptr || inputs->is_null()) return ContextEdit(std::move(edit));
  if (const auto* all = inputs->get_if<bool>()) {
    edit.all_inputs = *all;
    return ContextEdit(std::move(edit));
  }
  Result<std::vector<std::string>> names = read_names(*inputs, at_key(path, "clear_tool_inputs"));
  if (!names) return names.error();
  edit.inputs = std::move(*names);
  return ContextEdit(std::move(edit));
}

Result<ContextEdit> read_thinking(const Value& value, const std::string& path) {
  ClearThinking edit;
  const Value* keep = value.find("keep");
  if (keep != nullptr && (*keep == Value("all") || *keep == Value(ValueDict{{"type", "all"}}))) {
    edit.keep.reset();
    return ContextEdit(edit);
  }
  const auto amount = read_amount(value, "keep", path, {"thinking_turns"});
  if (!amount) return amount.error();
  if (*amount) edit.keep = (*amount)->value;
  return ContextEdit(edit);
}

bool has_role(const Value& message, const char* role) {
  const Value* own = message.find("role");
  return own != nullptr && *own == Value(role);
}

// A call of the conversation and where its result stands.
struct Use {
  std::size_t message;
  std::size_t call;
  std::string name;
  std::size_t result;
};

const std::string* text_of(const Value* value) { return value != nullptr ? value->get_if<std::string>() : nullptr; }

// Those that have a result, oldest first.
std::vector<Use> find_uses(const ValueList& messages) {
  std::map<std::string, Use> open;  // by id
  std::vector<Use> uses;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Value* calls = messages[i].find("tool_calls");
    const auto* list = calls != nullptr ? calls->get_if<ValueList>() : nullptr;
    for (std::size_t k = 0; list != nullptr && k < list->size(); ++k) {
      const std::string* id = text_of((*list)[k].find("id"));
      const Value* function = (*list)[k].find("function");
      const std::string* name = function != nullptr ? text_of(function->find("name")) : nullptr;
      if (id != nullptr && name != nullptr) open.insert_or_assign(*id, Use{i, k, *name, 0});
    }
    const std::string* answered = has_role(messages[i], "tool") ? text_of(messages[i].find("tool_call_id")) : nullptr;
    const auto use = answered != nullptr ? open.find(*answered) : open.end();
    if (use == open.end()) continue;
    use->second.result = i;
    uses.push_back(use->second);
    open.erase(use);
  }
  return uses;
}

void set_member(Value& dict, std::string_view name, Value value) {
  if (Value* member = find_member(*dict.get_if<ValueDict>(), name)) *member = std::move(value);
}

// Whether anything has changed.
bool clear_use(const ClearToolUses& edit, ValueList& messages, const Use& use) {
  if (std::ranges::count(edit.spared, use.name) > 0) return false;
  set_member(messages[use.result], "content", kCleared);
  if (!edit.all_inputs && std::ranges::count(edit.inputs, use.name) == 0) return true;
  Value* calls = find_member(*messages[use.message].get_if<ValueDict>(), "tool_calls");
  Value& call = (*calls->get_if<ValueList>())[use.call];
  set_member(*find_member(*call.get_if<ValueDict>(), "function"), "arguments", ValueDict{});
  return true;
}

// Which messages belong to one turn of the assistant: from what a user says to what he says next.
std::vector<std::vector<std::size_t>> turns_that_think(const ValueList& messages) {
  std::vector<std::vector<std::size_t>> turns(1);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (has_role(messages[i], "user")) turns.emplace_back();
    if (messages[i].find("reasoning_content") != nullptr) turns.back().push_back(i);
  }
  std::erase_if(turns, [](const auto& turn) { return turn.empty(); });
  return turns;
}

// One edit of a conversation, given up where it is not worth it.
struct Editor {
  ValueList& messages;
  const CountTokens& count;

  Result<std::optional<AppliedEdit>> operator()(const ClearToolUses& edit) const {
    const std::vector<Use> uses = find_uses(messages);
    const auto total = static_cast<std::int64_t>(uses.size());
    if (total <= edit.keep) return std::optional<AppliedEdit>();
    const Result<std::int64_t> before = count(messages);
    if (!before) return before.error();
    if (edit.trigger_tokens ? *before <= *edit.trigger_tokens : total <= edit.trigger_uses) return std::optional<AppliedEdit>();
    ValueList cleared = messages;
    AppliedEdit applied{kToolUses, "cleared_tool_uses"};
    for (std::int64_t i = 0; i < total - edit.keep; ++i)
      if (clear_use(edit, cleared, uses[static_cast<std::size_t>(i)])) ++applied.cleared;
    return finish(applied, std::move(cleared), *before, edit.at_least_tokens);
  }

  Result<std::optional<AppliedEdit>> operator()(const ClearThinking& edit) const {
    const auto turns = turns_that_think(messages);
    const auto total = static_cast<std::int64_t>(turns.size());
    if (!edit.keep || total <= *edit.keep) return std::optional<AppliedEdit>();
    const Result<std::int64_t> before = count(messages);
    if (!before) return before.error();
    ValueList cleared = messages;
    for (std::int64_t i = 0; i < total - *edit.keep; ++i)
      for (const std::size_t message : turns[static_cast<std::size_t>(i)])
        std::erase_if(*cleared[message].get_if<ValueDict>(), [](const auto& member) { return member.first == "reasoning_content"; });
    return finish({kThinking, "cleared_thinking_turns", total - *edit.keep}, std::move(cleared), *before, 0);
  }

  Result<std::optional<AppliedEdit>> finish(AppliedEdit applied, ValueList cleared, std::int64_t before, std::int64_t at_least) const {
    const Result<std::int64_t> after = count(cleared);
    if (!after) return after.error();
    applied.tokens = std::max<std::int64_t>(before - *after, 0);
    if (applied.cleared == 0 || applied.tokens < at_least) return std::optional<AppliedEdit>();
    messages = std::move(cleared);
    return std::optional(applied);
  }
};

}  // namespace

Result<std::vector<ContextEdit>> read_context_edits(const Value& value, const std::string& path, std::vector<std::string>& left_out) {
  if (value.get_if<ValueDict>() == nullptr) return json::wrong_type(path, "an object", value);
  std::vector<ContextEdit> edits;
  const Value* list = value.find("edits");
  if (list == nullptr || list->is_null()) return edits;
  const std::string edits_path = at_key(path, "edits");
  const auto* items = list->get_if<ValueList>();
  if (items == nullptr) return json::wrong_type(edits_path, "an array", *list);
  for (std::size_t i = 0; i < items->size(); ++i) {
    const std::string edit_path = at_index(edits_path, i);
    const std::string* type = text_of((*items)[i].find("type"));
    if (type == nullptr) return invalid_argument(fmt::format("'{}' has no 'type'", edit_path), at_key(edit_path, "type"));
    if (*type != kToolUses && *type != kThinking) {
      left_out.push_back(*type);
      continue;
    }
    Result<ContextEdit> edit = *type == kToolUses ? read_tool_uses((*items)[i], edit_path) : read_thinking((*items)[i], edit_path);
    if (!edit) return edit.error();
    edits.push_back(std::move(*edit));
  }
  return edits;
}

Result<std::vector<AppliedEdit>> apply_edits(const std::vector<ContextEdit>& edits, ValueList& messages, const CountTokens& count) {
  std::vector<AppliedEdit> applied;
  for (const ContextEdit& edit : edits) {
    const Result<std::optional<AppliedEdit>> done = std::visit(Editor{messages, count}, edit);
    if (!done) return done.error();
    if (*done) applied.push_back(**done);
  }
  return applied;
}

}  // namespace braid::net::anthropic
