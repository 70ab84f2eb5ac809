#include "model/sampling/dry.h"

#include "model/deterministic_math.h"

#include <algorithm>
#include <cstddef>

namespace braid::model {
namespace {

constexpr double kLargestExponent = 88.0;  // e^x is a float still

// The tokens after the last sequence breaker. Of several that begin at one token the longest counts.
std::size_t tokens_since_breaker(std::span<const TokenId> tokens, std::span<const std::vector<TokenId>> breakers) {
  for (std::size_t begin = tokens.size(); begin-- > 0;) {
    const auto rest = tokens.subspan(begin);
    std::size_t longest = 0;
    for (const std::vector<TokenId>& breaker : breakers) {
      if (breaker.size() > longest && breaker.size() <= rest.size() && std::ranges::equal(breaker, rest.first(breaker.size())))
        longest = breaker.size();
    }
    if (longest > 0) return rest.size() - longest;
  }
  return tokens.size();
}

bool is_breaker(TokenId token, std::span<const std::vector<TokenId>> breakers) {
  return std::ranges::any_of(breakers, [token](const auto& breaker) { return breaker.size() == 1 && breaker[0] == token; });
}

}  // namespace

DryPenalty::DryPenalty(std::int32_t context) {
  repeats_.reserve(static_cast<std::size_t>(context));
  continuations_.reserve(static_cast<std::size_t>(context));
}

void DryPenalty::apply(const SamplingParams& sampling, std::span<const TokenId> tokens, std::span<float> logits) {
  if (sampling.dry_multiplier == 0.0F || sampling.dry_base < 1.0F) return;
  if (sampling.dry_penalty_last_n >= 0)
    tokens = tokens.last(std::min(tokens.size(), static_cast<std::size_t>(sampling.dry_penalty_last_n)));
  const std::span<const std::vector<TokenId>> breakers = sampling.dry_sequence_breakers;
  const auto limit = static_cast<std::int32_t>(tokens_since_breaker(tokens, breakers));
  const std::int32_t allowed = sampling.dry_allowed_length;
  if (static_cast<std::int64_t>(tokens.size()) <= allowed || limit < allowed) return;

  find_repeats(tokens);
  continuations_.clear();
  for (std::size_t k = 1; k < tokens.size(); ++k) {
    const std::int32_t repeated = std::min(repeats_[k], limit);
    if (repeated >= allowed) continuations_.push_back({tokens[tokens.size() - k], repeated});
  }
  std::ranges::sort(continuations_, [](const Continuation& a, const Continuation& b) {
    return a.token < b.token || (a.token == b.token && a.repeated > b.repeated);
  });
  const double growth = fixed_log(static_cast<double>(sampling.dry_base));
  TokenId last = -1;
  for (const auto& [token, repeated] : continuations_) {
    if (token == last || is_breaker(token, breakers)) continue;
    last = token;
    const double factor = fixed_exp(std::min(growth * (repeated - allowed), kLargestExponent));
    logits[static_cast<std::size_t>(token)] -= static_cast<float>(static_cast<double>(sampling.dry_multiplier) * factor);
  }
}

// The Z algorithm (Gusfield, "Algorithms on strings, trees, and sequences", 1997) on the reversed tokens.
void DryPenalty::find_repeats(std::span<const TokenId> tokens) {
  const std::size_t count = tokens.size();
  const auto back = [&](std::size_t i) { return tokens[count - 1 - i]; };
  repeats_.assign(count, 0);
  std::size_t left = 0;
  std::size_t right = 0;  // back(left..right) is known to equal back(0..right - left)
  for (std::size_t k = 1; k < count; ++k) {
    std::size_t length = k < right ? std::min(right - k, static_cast<std::size_t>(repeats_[k - left])) : 0;
    while (k + length < count && back(length) == back(k + length)) ++length;
    repeats_[k] = static_cast<std::int32_t>(length);
    if (k + length > right) {
      left = k;
      right = k + length;
    }
  }
}

}  // namespace braid::model
