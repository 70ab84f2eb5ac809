#include "net/generation/prompt_cutting.h"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <optional>
#include <string_view>
#include <variant>

namespace braid::net {
namespace {

using Tokens = std::vector<TokenId>;

void erase(Tokens& prompt, std::size_t begin, std::size_t end) {
  prompt.erase(prompt.begin() + static_cast<std::ptrdiff_t>(begin), prompt.begin() + static_cast<std::ptrdiff_t>(end));
}

// Where an item stands between the words of its frame. A space before it belongs to its first word.
Result<TokenRange> framed_range(const ItemFrame& frame, std::size_t item, std::size_t tokens, const TextCodec& codec) {
  const EncodeOptions options{.add_special = false, .parse_special = true};
  std::string_view before = frame.before[item];
  while (before.ends_with(' ')) before.remove_suffix(1);
  const Result<Tokens> front = codec.encode(before, options);
  if (!front) return front.error();
  const Result<Tokens> back = codec.encode(frame.behind, options);
  if (!back) return back.error();
  const std::size_t end = tokens - std::min(tokens, back->size());
  return TokenRange{std::min(front->size(), end), end};
}

// The part of a prompt that may be cut, if it is one that says something about the rest of it.
Result<std::optional<TokenRange>> document_of(const GenerationCall& call, std::size_t place, std::size_t tokens, const TextCodec& codec) {
  if (!call.documents.empty()) return std::optional(call.documents[place]);
  if (!call.frame) return std::optional<TokenRange>();
  const Result<TokenRange> range = framed_range(*call.frame, place, tokens, codec);
  if (!range) return range.error();
  return std::optional(*range);
}

Result<void> cut_document(Tokens& prompt, const TokenRange& document, std::size_t most) {
  const std::size_t around = prompt.size() - (document.end - document.begin);
  if (around >= most)
    return invalid_argument(fmt::format("{} tokens leave no room for the document: {} stand before it and behind it", most, around),
                            "truncate_prompt_tokens");
  erase(prompt, document.begin + most - around, document.end);
  return {};
}

// To `most` tokens, the first ones and those that close every text, which a chat has none of where the request says nothing.
Result<void> cut_to_head(std::vector<Tokens>& prompts, const GenerationCall& call, const TextCodec& codec, std::size_t most) {
  const auto* items = std::get_if<std::vector<PromptItem>>(&call.prompt);
  const std::size_t of_texts = std::min(call.add_special.value_or(items != nullptr) ? codec.closing_tokens() : 0, most);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    Tokens& prompt = prompts[i];
    if (prompt.size() <= most) continue;
    const auto document = document_of(call, i, prompt.size(), codec);
    if (!document) return document.error();
    if (*document) {
      if (const Result<void> cut = cut_document(prompt, **document, most); !cut) return cut;
      continue;
    }
    const bool is_text = items == nullptr || std::holds_alternative<std::string>((*items)[i]);
    const std::size_t closing = is_text ? of_texts : 0;  // ids are all the client's
    erase(prompt, most - closing, prompt.size() - closing);
  }
  return {};
}

}  // namespace

Result<void> cut_prompts(std::vector<Tokens>& prompts, GenerationCall& call, const ServedModel& model) {
  const std::int32_t context = model.context_length;
  if (call.prompt_head) {
    const auto most = static_cast<std::size_t>(*call.prompt_head < 0 ? context : *call.prompt_head);
    if (const Result<void> cut = cut_to_head(prompts, call, *model.codec, most); !cut) return cut;
  }
  if (call.cuts_prompt_end)
    for (Tokens& prompt : prompts) prompt.resize(std::min(prompt.size(), static_cast<std::size_t>(context)));
  if (!call.prompt_tail) return {};
  auto* items = std::get_if<std::vector<PromptItem>>(&call.prompt);
  const std::int32_t room = context - std::clamp(call.max_tokens.value_or(1), 0, context - 1);
  const auto most = static_cast<std::size_t>(*call.prompt_tail < 0 ? room : *call.prompt_tail);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    Tokens& prompt = prompts[i];
    if (prompt.size() <= most) continue;
    prompt.erase(prompt.begin(), prompt.end() - static_cast<std::ptrdiff_t>(most));
    if (items != nullptr) (*items)[i] = prompt;
  }
  return {};
}

}  // namespace braid::net
