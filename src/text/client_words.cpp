#include "text/client_words.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace braid::text {
namespace {

bool has_clients_words(const Value& message) {
  const Value* role = message.find("role");
  return role != nullptr && (*role == Value("user") || *role == Value("tool"));
}

// Calls visit(text) for every text within `value`.
template <class SomeValue, class Visit>
void for_each_text(SomeValue& value, const Visit& visit) {
  if (auto* text = value.template get_if<std::string>()) visit(*text);
  if (auto* list = value.template get_if<ValueList>())
    for (auto& item : *list) for_each_text(item, visit);
  if (auto* dict = value.template get_if<ValueDict>())
    for (auto& [name, member] : *dict) for_each_text(member, visit);
}

bool spells_any(const Tokenizer& tokenizer, std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at)
    if (tokenizer.spells_control_token(text, at)) return true;
  return false;
}

std::size_t character_size(unsigned char lead) {
  if (lead < 0xC0) return 1;
  if (lead < 0xE0) return 2;
  return lead < 0xF0 ? 3 : 4;
}

// The mark stands behind the first character of the token.
std::string with_marks(const Tokenizer& tokenizer, const std::string& text, const std::string& mark) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = character_size(static_cast<unsigned char>(text[at]));
    out.append(text, at, size);
    if (tokenizer.spells_control_token(text, at)) out += mark;
    at += size;
  }
  return out;
}

// U+FDD0 … U+FDEF, the first that no message uses.
std::optional<std::string> unused_noncharacter(const Value& messages) {
  for (int i = 0; i < 32; ++i) {
    const std::string mark = {'\xEF', '\xB7', static_cast<char>(0x90 + i)};
    bool used = false;
    for_each_text(messages, [&](const std::string& text) { used = used || text.find(mark) != std::string::npos; });
    if (!used) return mark;
  }
  return std::nullopt;
}

}  // namespace

Result<std::optional<MarkedMessages>> mark_client_words(const Tokenizer& tokenizer, const Value& messages) {
  const auto* list = messages.get_if<ValueList>();
  if (list == nullptr) return std::optional<MarkedMessages>();
  bool any = false;
  for (const Value& message : *list) {
    if (!has_clients_words(message)) continue;
    for_each_text(message, [&](const std::string& text) { any = any || spells_any(tokenizer, text); });
  }
  if (!any) return std::optional<MarkedMessages>();
  const std::optional<std::string> mark = unused_noncharacter(messages);
  if (!mark) return invalid_argument("'messages' use every Unicode noncharacter from U+FDD0 to U+FDEF", "messages");
  MarkedMessages marked{messages, *mark};
  for (Value& message : *marked.messages.get_if<ValueList>()) {
    if (!has_clients_words(message)) continue;
    for_each_text(message, [&](std::string& text) { text = with_marks(tokenizer, text, *mark); });
  }
  return std::optional<MarkedMessages>(std::move(marked));
}

RenderedChat take_out_marks(std::string rendered, const std::string& mark) {
  RenderedChat chat;
  if (mark.empty()) {
    chat.text = std::move(rendered);
    return chat;
  }
  std::size_t begin = 0;
  for (std::size_t at = rendered.find(mark); at != std::string::npos; at = rendered.find(mark, begin)) {
    chat.text.append(rendered, begin, at - begin);
    begin = at + mark.size();
    std::size_t place = chat.text.size();
    while (place > 0 && (static_cast<unsigned char>(chat.text[--place]) & 0xC0U) == 0x80U) {
    }
    chat.literal.push_back(place);
  }
  chat.text.append(rendered, begin);
  return chat;
}

}  // namespace braid::text
