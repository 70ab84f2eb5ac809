#include "text/role_rules.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace braid::text {
namespace {

constexpr std::string_view kBetween = "\n\n";  // texts that are joined

Value message(const char* role, const char* content) { return ValueDict{{"role", role}, {"content", content}}; }

// Whether all texts appear, in this order. An exception of the template's own says that it does not take the conversation.
bool shows(const ChatTemplate& chat_template, ValueList messages, std::initializer_list<std::string_view> texts) {
  ChatPrompt prompt;
  prompt.messages = std::move(messages);
  const Result<std::string> rendered = chat_template.render(prompt);
  if (!rendered) return false;
  std::size_t at = 0;
  return std::all_of(texts.begin(), texts.end(), [&](std::string_view text) {
    at = rendered->find(text, at);
    if (at == std::string::npos) return false;
    at += text.size();
    return true;
  });
}

bool has_role(const Value& message, std::string_view role) {
  const Value* value = message.find("role");
  const auto* text = value == nullptr ? nullptr : value->get_if<std::string>();
  return text != nullptr && *text == role;
}

bool is_system(const Value& message) { return has_role(message, "system") || has_role(message, "developer"); }

ValueList parts_of(const Value& content) {
  if (const auto* list = content.get_if<ValueList>()) return *list;
  const auto* text = content.get_if<std::string>();
  return text == nullptr || text->empty() ? ValueList{} : ValueList{ValueDict{{"type", "text"}, {"text", *text}}};
}

Value joined_content(const Value& a, const Value& b) {
  const auto* x = a.get_if<std::string>();
  const auto* y = b.get_if<std::string>();
  if (a.is_null() || (x != nullptr && x->empty())) return b;
  if (b.is_null() || (y != nullptr && y->empty())) return a;
  if (x != nullptr && y != nullptr) return *x + std::string(kBetween) + *y;
  ValueList parts = parts_of(a);
  for (Value& part : parts_of(b)) parts.push_back(std::move(part));
  return parts;
}

// `message` gets what `other` says behind its own, or before it.
void join(Value& message, const Value& other, bool before) {
  auto* members = message.get_if<ValueDict>();
  const auto* others = other.get_if<ValueDict>();
  if (members == nullptr || others == nullptr) return;
  for (const auto& [name, value] : *others) {
    Value* own = find_member(*members, name);
    if (own == nullptr) {
      if (name != "role") members->emplace_back(name, value);
    } else if (name == "content") {
      *own = before ? joined_content(value, *own) : joined_content(*own, value);
    } else if (auto* list = own->get_if<ValueList>(); list != nullptr && value.get_if<ValueList>() != nullptr) {
      const auto& more = *value.get_if<ValueList>();
      list->insert(before ? list->begin() : list->end(), more.begin(), more.end());
    }
  }
}

// All system messages as one; nothing where there is none.
std::optional<Value> take_system(ValueList& messages) {
  std::optional<Value> system;
  for (const Value& one : messages) {
    if (!is_system(one)) continue;
    if (system) {
      join(*system, one, false);
    } else {
      system = one;
    }
  }
  std::erase_if(messages, is_system);
  return system;
}

void join_neighbours(ValueList& messages) {
  ValueList out;
  for (Value& one : messages) {
    const bool same = !out.empty() && ((has_role(one, "user") && has_role(out.back(), "user")) ||
                                       (has_role(one, "assistant") && has_role(out.back(), "assistant")));
    if (same) {
      join(out.back(), one, false);
    } else {
      out.push_back(std::move(one));
    }
  }
  messages = std::move(out);
}

}  // namespace

RoleRules find_role_rules(const ChatTemplate& chat_template) {
  RoleRules rules;
  const Value ask = message("user", "QUESTION");
  const Value answer = message("assistant", "ANSWER");
  const Value again = message("user", "FURTHER");
  const Value first = message("system", "FIRST");
  const Value second = message("system", "SECOND");
  if (!shows(chat_template, {ask}, {"QUESTION"})) return rules;
  rules.system = shows(chat_template, {first, ask}, {"FIRST", "QUESTION"});
  rules.systems_anywhere = rules.system && shows(chat_template, {first, second, ask}, {"FIRST", "SECOND", "QUESTION"}) &&
                           shows(chat_template, {first, ask, answer, second, again}, {"FIRST", "QUESTION", "SECOND", "FURTHER"});
  rules.neighbours = shows(chat_template, {ask, again}, {"QUESTION", "FURTHER"});
  rules.answer_first = shows(chat_template, {answer, ask}, {"ANSWER", "QUESTION"}) ||
                       !shows(chat_template, {message("user", ""), answer, ask}, {"ANSWER", "QUESTION"});
  return rules;
}

void follow_role_rules(const RoleRules& rules, Value& value) {
  auto* messages = value.get_if<ValueList>();
  if (messages == nullptr) return;
  const auto first = std::find_if_not(messages->begin(), messages->end(), is_system);
  if (!rules.answer_first && first != messages->end() && has_role(*first, "assistant")) messages->insert(first, message("user", ""));
  const auto systems = std::count_if(messages->begin(), messages->end(), is_system);
  const bool in_front = systems == 0 || (systems == 1 && is_system(messages->front()));
  if (!rules.system || (!rules.systems_anywhere && !in_front)) {
    if (std::optional<Value> system = take_system(*messages)) {
      const auto user = std::find_if(messages->begin(), messages->end(), [](const Value& one) { return has_role(one, "user"); });
      if (rules.system) {
        messages->insert(messages->begin(), std::move(*system));
      } else if (user != messages->end()) {
        join(*user, *system, true);
      } else {
        *find_member(*system->get_if<ValueDict>(), "role") = "user";
        messages->insert(messages->begin(), std::move(*system));
      }
    }
  }
  if (!rules.neighbours) join_neighbours(*messages);
}

}  // namespace braid::text
