// The validated wish of one client: everything the engine needs, nothing of HTTP or JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace braid {

using TokenId = std::int32_t;

struct SamplingParams {
  float temperature = 1.0F;  // 0 means greedy
  float top_p = 1.0F;        // (0, 1]
  float min_p = 0.0F;        // [0, 1]
  std::int32_t top_k = 0;    // 0 means all
  std::uint64_t seed = 0;    // keys the counter-based generator together with `choice` and the token's position
  std::uint32_t choice = 0;  // index of the choice within its request
  std::int32_t top_logprobs = -1;  // -1: none; 0: the sampled token's only; n: the n best as well (at most kMaxTopLogprobs)
};

inline constexpr std::int32_t kMaxTopLogprobs = 20;

// Where a sequence ends. Stop strings are the session's business: the engine knows tokens only.
struct StopRules {
  std::int32_t max_tokens = 16;  // at least 1; the engine cuts it to the room left in the context
  std::int32_t min_tokens = 0;   // end-of-sequence and stop tokens cannot be sampled before
  bool ignore_eos = false;
  std::vector<TokenId> stop_token_ids;  // besides the model's own end-of-sequence tokens
};

// Immutable once submitted.
struct Request {
  std::string id;               // for logs and lookup; unique per choice
  std::vector<TokenId> prompt;  // not empty, every id within the vocabulary
  SamplingParams sampling;
  StopRules stop;
  std::string cache_salt;       // requests share cached prefixes only with those of the same salt; empty is one of them
};

}  // namespace braid
