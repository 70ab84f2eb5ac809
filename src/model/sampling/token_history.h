// The tokens of one sequence so far, counted, as the penalties look at them. Strand only.
#pragma once

#include "braid/generation_request.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace braid::model {

class TokenHistory {
 public:
  struct Count {
    TokenId token = 0;
    std::int32_t in_window = 0;  // among the last penalty_last_n tokens of prompt and answer
    std::int32_t in_answer = 0;
  };

  // `known`: prompt and answer so far, of which the last `generated` are the answer's. Reserves room for `more` tokens.
  void start(const SamplingParams& sampling, std::span<const TokenId> known, std::int32_t generated, std::int32_t more);

  // A token of the answer. Allocates only beyond the room that was reserved.
  void append(TokenId token);

  std::span<const TokenId> tokens() const { return tokens_; }
  std::span<const Count> counts() const { return counts_; }  // by ascending token; a token may count 0 by now

 private:
  Count& count_of(TokenId token);

  std::vector<TokenId> tokens_;
  std::vector<Count> counts_;
  std::int32_t window_ = -1;  // -1: everything
};

}  // namespace braid::model
