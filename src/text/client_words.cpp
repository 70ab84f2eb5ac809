#include "text/client_words.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>

namespace braid::text {
namespace {

// Calls visit(text) for every text within `value`, names of members too.
template <class SomeValue, class Visit>
void for_each_text(SomeValue& value, const Visit& visit) {
  if (auto* text = value.template get_if<std::string>()) visit(*text);
  if (auto* list = value.template get_if<ValueList>())
    for (auto& item : *list) for_each_text(item, visit);
  if (auto* dict = value.template get_if<ValueDict>())
    for (auto& [name, member] : *dict) {
      visit(name);
      for_each_text(member, visit);
    }
}

template <class SomePrompt, class Visit>
void for_each_text_of(SomePrompt& prompt, const Visit& visit) {
  for_each_text(prompt.messages, visit);
  for_each_text(prompt.tools, visit);
  for_each_text(prompt.kwargs, visit);
}

constexpr std::string_view kBlank = " \t\n\r\f\v";

// Whether a control token stands here, or what is left of the text, without white space that templates trim, may be the first part of one.
bool needs_mark(const Tokenizer& tokenizer, std::string_view text, std::size_t at) {
  return tokenizer.spells_control_token(text, at) || tokenizer.begins_control_token(text.substr(0, text.find_last_not_of(kBlank) + 1), at);
}

bool needs_marks(const Tokenizer& tokenizer, std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at)
    if (needs_mark(tokenizer, text, at)) return true;
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
    if (needs_mark(tokenizer, text, at)) out += mark;
    at += size;
  }
  return out;
}

// U+FDD0 … U+FDEF, the first that no message uses.
std::optional<std::string> unused_noncharacter(const ChatPrompt& prompt) {
  for (int i = 0; i < 32; ++i) {
    const std::string mark = {'\xEF', '\xB7', static_cast<char>(0x90 + i)};
    bool used = false;
    for_each_text_of(prompt, [&](const std::string& text) { used = used || text.find(mark) != std::string::npos; });
    if (!used) return mark;
  }
  return std::nullopt;
}

// How a template and a model that thinks write its reasoning. Their own tokens mean it only in front of an answer.
constexpr std::string_view kOpen = "<think>";
constexpr std::string_view kClose = "</think>";

// The size of the reasoning that an answer begins with, its tokens included; 0: none.
std::size_t reasoning_size(std::string_view answer) {
  const std::size_t begin = std::min(answer.find_first_not_of(kBlank), answer.size());
  const std::size_t end = answer.find(kClose);
  if (!answer.substr(begin).starts_with(kOpen) || end == std::string_view::npos) return 0;
  return end + kClose.size();
}

// Marks all but the two tokens of the reasoning that the answer begins with.
std::string with_marks_in_answer(const Tokenizer& tokenizer, const std::string& answer, const std::string& mark) {
  const std::size_t size = reasoning_size(answer);
  if (size == 0) return with_marks(tokenizer, answer, mark);
  const std::size_t words = answer.find(kOpen) + kOpen.size();
  const std::string reasoning = answer.substr(words, size - kClose.size() - words);
  return answer.substr(0, words) + with_marks(tokenizer, reasoning, mark) + std::string(kClose) +
         with_marks(tokenizer, answer.substr(size), mark);
}

}  // namespace

Result<MarkedPrompt> mark_client_words(const Tokenizer& tokenizer, std::string_view template_source, const ChatPrompt& prompt) {
  MarkedPrompt out{prompt, {}};
  bool any = false;
  for_each_text_of(prompt, [&](const std::string& text) { any = any || needs_marks(tokenizer, text); });
  if (!any) return out;
  const std::optional<std::string> mark = unused_noncharacter(prompt);
  if (!mark) return invalid_argument("'messages' use every Unicode noncharacter from U+FDD0 to U+FDEF", "messages");
  const bool splits = template_source.find(kClose) != std::string_view::npos;
  auto* list = out.prompt.messages.get_if<ValueList>();
  ValueList messages = list == nullptr ? ValueList{} : *list;
  for_each_text_of(out.prompt, [&](std::string& text) { text = with_marks(tokenizer, text, *mark); });
  for (std::size_t i = 0; splits && i < messages.size(); ++i) {
    const Value* content = messages[i].find("content");
    const auto* answer = content == nullptr ? nullptr : content->get_if<std::string>();
    const Value* role = messages[i].find("role");
    if (answer == nullptr || role == nullptr || *role != Value("assistant")) continue;
    *find_member(*(*list)[i].get_if<ValueDict>(), "content") = with_marks_in_answer(tokenizer, *answer, *mark);
  }
  out.mark = *mark;
  return out;
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
