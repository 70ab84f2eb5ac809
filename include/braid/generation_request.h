// The validated wish of one client: everything the engine needs, nothing of HTTP or JSON.
#pragma once

#include "braid/media_span.h"
#include "braid/pixels.h"
#include "braid/speculation.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace braid {

class Constraint;

using TokenId = std::int32_t;

struct LogitBias {
  TokenId token = 0;
  float bias = 0.0F;  // added to the raw logit; -infinity bans
};

// What cuts down the tokens that may be drawn, and the temperature. The names are llama-server's.
enum class SamplerStep : std::uint8_t { kTopNSigma, kTopK, kTypicalP, kTopP, kMinP, kXtc, kTemperature };

// Order: biases and penalties, constraint mask, then the truncations, then the draw. Log-probabilities that are reported are those of
// the model's own distribution, before all of these. The names of the extensions are llama-server's.
struct SamplingParams {
  float temperature = 1.0F;                // 0 means greedy
  float top_p = 1.0F;                      // (0, 1]
  float min_p = 0.0F;                      // [0, 1]
  std::int32_t top_k = 0;                  // 0 means all
  std::uint64_t seed = 0;                  // keys the counter-based generator together with `choice` and the token's position
  std::uint32_t choice = 0;                // index of the choice within its request
  std::vector<LogitBias> logit_bias = {};  // at most one for a token
  float repetition_penalty = 1.0F;         // Hugging Face: over prompt and answer; divides positive logits, multiplies negative ones
  float presence_penalty = 0.0F;           // OpenAI: over the answer
  float frequency_penalty = 0.0F;
  std::int32_t penalty_last_n = -1;  // how far repetition_penalty looks back; -1: everything
  float typical_p = 1.0F;            // 1: off
  float top_n_sigma = -1.0F;         // below 0: off
  float xtc_probability = 0.0F;      // 0: off
  float xtc_threshold = 0.1F;
  float dry_multiplier = 0.0F;  // 0: off
  float dry_base = 1.75F;
  std::int32_t dry_allowed_length = 2;
  std::int32_t dry_penalty_last_n = -1;                          // -1: everything
  std::vector<std::vector<TokenId>> dry_sequence_breakers = {};  // each a breaker's tokens
  std::int32_t mirostat = 0;                                     // 0: off, 1, 2; replaces the truncations
  float mirostat_tau = 5.0F;
  float mirostat_eta = 0.1F;
  std::vector<SamplerStep> steps = {};  // only these, in this order, each once; empty: all, in the usual order
  std::int32_t top_logprobs = -1;       // -1: none; 0: the sampled token's only; n: the n best as well (at most kMaxTopLogprobs)
  bool drawn_logprob = false;           // also its log-probability among the tokens that it was drawn from, as they were weighed
};

inline constexpr std::int32_t kMaxTopLogprobs = 20;

// What of the tokens' last hidden states, after the final norm, becomes the one vector of a prompt. It is not normalised.
enum class Pooling : std::uint8_t {
  kNone,   // no vector: an answer is generated
  kLast,   // the last token's
  kMean,   // the mean of all tokens, summed in the order of their positions
  kFirst,  // the first token's ("cls")
  kEach,   // every token's from GenerationRequest::pooled_from on, one after the other in one vector
};

// What a request that pools gets of its vector.
enum class PooledOutput : std::uint8_t {
  kVector,      // itself
  kScores,      // what the model's head makes of it: a number for each class
  kLastInputs,  // of a decoder that one process computes, with kEach: what the last layer reads of each token, before its norms
};

// Where a sequence ends. Stop strings are the session's business: the engine knows tokens only.
struct StopRules {
  std::int32_t max_tokens = 16;  // the engine cuts it to the room left in the context; 0 computes the prompt and samples nothing
  std::int32_t min_tokens = 0;   // end-of-sequence and stop tokens cannot be sampled before
  bool ignore_eos = false;
  std::vector<TokenId> stop_token_ids;  // besides the model's own end-of-sequence tokens
};

// What changes the model's weights for a request.
struct AdapterUse {
  std::uint32_t index = 0;                 // of the model's adapters, counted from 1; 0: none
  std::string revision;                    // cached blocks are those of the same one; empty without an adapter
  std::shared_ptr<const void> lease = {};  // while it lives, the index stands for them
};

// Immutable once submitted.
struct GenerationRequest {
  std::string id;               // for logs and lookup; unique per choice
  std::vector<TokenId> prompt;  // not empty, every id within the vocabulary
  SamplingParams sampling;
  StopRules stop;
  std::vector<MediaSpan> media;            // of the prompt; ascending, without overlap. Cached blocks are those of the same media
  std::vector<MediaGrid> media_grids;      // of each of these; empty: none of them is one
  std::vector<SpanVectors> media_vectors;  // likewise; empty where `images` are still to be encoded
  // In the order of the prompt. What the model's tower makes of them, one after the other, are the vectors that `media` counts: a span never
  // reaches over two images, and an image may have several.
  std::vector<SharedPixels> images;
  AdapterUse adapter;
  // Turns of the prompt, counted from its end, its last one being 0, behind which others will go on (cache_control): a model with recurrent
  // layers keeps its state there, if it tells turns apart.
  std::vector<std::int32_t> marked_turns;
  std::string client;                // who asks; empty: nobody in particular. Answers to one are guessed from others to it
  std::string cache_salt;            // requests share cached prefixes only with those of the same salt; empty is one of them
  std::int32_t priority = 0;         // [-100, 100]; lower first
  Pooling pooling = Pooling::kNone;  // other than kNone: one PooledVector comes, and no answer; max_tokens does not count
  PooledOutput pooled_output = PooledOutput::kVector;
  std::int32_t pooled_from = 0;       // kEach: the first token whose vector is wanted
  std::int32_t task = 0;              // of a model that has weights of their own for several, which: VectorRules::tasks, from 1; 0: none
  std::int32_t second_text = 0;       // of a prompt of two texts that an encoder reads, where the second one begins; 0: there is one
  std::int32_t prompt_logprobs = -1;  // as SamplingParams::top_logprobs, for the prompt's tokens; such a request reads no cache
  std::shared_ptr<const Constraint> constraint;  // of the answer; null: none
  Speculation speculation;
  bool tells_revisions = false;                  // Token::revision
  std::shared_ptr<const void> reservation = {};  // Engine::reserve()'s: it belongs to work that was accepted before; null: it does not
};

}  // namespace braid
