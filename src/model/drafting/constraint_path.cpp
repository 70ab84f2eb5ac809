#include "model/drafting/constraint_path.h"

#include <bit>
#include <optional>

namespace braid::model {
namespace {

std::optional<TokenId> only_token(std::span<const std::uint32_t> mask) {
  std::optional<TokenId> only;
  for (std::size_t word = 0; word < mask.size(); ++word) {
    if (mask[word] == 0) continue;
    if (only || !std::has_single_bit(mask[word])) return std::nullopt;
    only = static_cast<TokenId>(word * 32) + std::countr_zero(mask[word]);
  }
  return only;
}

bool allows(std::span<const std::uint32_t> mask, TokenId token) {
  const auto bit = static_cast<std::size_t>(token);
  return bit / 32 < mask.size() && (mask[bit / 32] >> (bit % 32) & 1U) != 0;
}

}  // namespace

std::size_t keep_to_constraint(ConstraintState& ahead, std::span<TokenId> guesses, std::size_t count, std::span<DraftSource> sources,
                               std::span<std::uint32_t> mask) {
  for (std::size_t i = 0; i < guesses.size(); ++i) {
    ahead.fill_mask(mask);
    const std::optional<TokenId> forced = only_token(mask);
    if (forced) {
      if (i < count && guesses[i] != *forced) count = i;  // what was guessed behind another token means nothing
      if (i >= count) count = i + 1;
      guesses[i] = *forced;
      sources[i] = DraftSource::kGrammar;
    } else if (i >= count || !allows(mask, guesses[i])) {
      return i;
    }
    ahead.accept(guesses[i]);
  }
  return count;
}

}  // namespace braid::model
