// Which tokens end an answer or mark a gap to be filled, by the names that models give them.
#pragma once

#include "text/tokenizer/vocabulary.h"

#include <array>
#include <optional>
#include <string_view>
#include <vector>

namespace braid::text {

// Sets `end_of_generation`: `named` and all tokens with a usual name. They become control tokens, with a warning, but for `keep`.
void mark_ends(Vocabulary& vocabulary, std::vector<TokenId> named, std::optional<TokenId> keep);

// What models call the mark of a fill-in-the-middle prompt, with the two names that GGUF has for its id.
struct InfillNames {
  std::string_view key;
  std::string_view old_key;
  std::array<std::string_view, 7> texts;
};

inline constexpr InfillNames kInfillPrefix = {
    "fim_pre", "prefix", {"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>", "<|code_prefix|>"}};
inline constexpr InfillNames kInfillSuffix = {
    "fim_suf", "suffix", {"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>", "<|code_suffix|>"}};
inline constexpr InfillNames kInfillMiddle = {
    "fim_mid", "middle", {"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>", "<|code_middle|>"}};

std::optional<TokenId> find_infill_mark(const Vocabulary& vocabulary, const InfillNames& names);

// Sets `infill` when there are all three.
void set_infill(Vocabulary& vocabulary, std::optional<TokenId> prefix, std::optional<TokenId> suffix, std::optional<TokenId> middle);

}  // namespace braid::text
