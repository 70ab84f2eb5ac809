#include "text/tokenizer/token_roles.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace braid::text {
namespace {

// Texts by which models mark that an answer ends, whatever their metadata name as eos.
constexpr std::array<std::string_view, 14> kEndOfGenerationTexts = {"<|eot_id|>",         "<|eom_id|>",
                                                                    "<|im_end|>",         "<|end|>",
                                                                    "<|endoftext|>",      "<|end_of_text|>",
                                                                    "<end_of_turn>",      "<EOT>",
                                                                    "<end_of_utterance>", "<｜end▁of▁sentence｜>",
                                                                    "<|fim_pad|>",        "<|repo_name|>",
                                                                    "<|file_sep|>",       "<|fim_repo|>"};

// In OpenAI's Harmony format (gpt-oss) <|end|> ends one message of an answer, such as its reasoning; the answer ends with
// <|return|>, or <|call|> after a call.
void tell_messages_from_answers(const Vocabulary& vocabulary, std::vector<TokenId>& ends) {
  const auto answer = vocabulary.find("<|return|>");
  const auto call = vocabulary.find("<|call|>");
  const auto message = vocabulary.find("<|end|>");
  if (!answer || !call || !message) return;
  ends.insert(ends.end(), {*answer, *call});
  std::erase(ends, *message);
}

// What ends an answer is no part of its text.
void make_control(Vocabulary& vocabulary, TokenId id) {
  VocabularyEntry& entry = vocabulary.entries[static_cast<std::size_t>(id)];
  if (entry.type == TokenType::kControl || entry.type == TokenType::kUnknown || entry.type == TokenType::kByte) return;
  entry.type = TokenType::kControl;
  vocabulary.warnings.push_back(
      fmt::format("token {} '{}' ends answers, but is not marked as control token; treated as one", id, entry.text));
}

}  // namespace

void mark_ends(Vocabulary& vocabulary, std::vector<TokenId> named, std::optional<TokenId> keep) {
  for (const std::string_view text : kEndOfGenerationTexts)
    if (const auto id = vocabulary.find(text)) named.push_back(*id);
  tell_messages_from_answers(vocabulary, named);
  std::sort(named.begin(), named.end());
  named.erase(std::unique(named.begin(), named.end()), named.end());
  for (const TokenId id : named)
    if (id != keep) make_control(vocabulary, id);
  vocabulary.end_of_generation = std::move(named);
}

std::optional<TokenId> find_infill_mark(const Vocabulary& vocabulary, const InfillNames& names) {
  for (const std::string_view text : names.texts)
    if (const auto id = vocabulary.find(text)) return id;
  return std::nullopt;
}

void set_infill(Vocabulary& vocabulary, std::optional<TokenId> prefix, std::optional<TokenId> suffix, std::optional<TokenId> middle) {
  const auto begin = vocabulary.add_bos ? vocabulary.bos : std::nullopt;
  if (prefix && suffix && middle) vocabulary.infill = InfillTokens{begin, *prefix, *suffix, *middle};
}

}  // namespace braid::text
