// A model's dimensions, read from GGUF metadata and held against each other.
#pragma once

#include "braid/result.h"
#include "files/gguf.h"
#include "model/families.h"
#include "step/visibility.h"

#include <cstdint>

namespace braid::model {

enum class RopeScaling { kNone, kLinear, kYarn, kLongrope };

// Leading tokens that a limited context keeps: a softmax needs a place for the weight it has no use for (Xiao et al. 2023, "Efficient
// streaming language models with attention sinks").
inline constexpr std::int32_t kSinkTokens = 4;

// How positions become angles; rope.h turns it into frequencies.
struct RopeParameters {
  double base = 10000.0;
  std::int32_t rotated = 0;  // leading values of a head that rotate; even
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1.0;                // how far the context was stretched
  std::int32_t original_context = 0;  // the context before stretching
  double attention_factor = 1.0;      // multiplies cos and sin
  double yarn_extrapolation = 1.0;    // yarn: share of the per-dimension ramp
  double yarn_beta_fast = 32.0;
  double yarn_beta_slow = 1.0;
};

struct HyperParameters {
  const Family* family = nullptr;
  std::int32_t context_length = 0;
  std::int32_t layers = 0;
  std::int32_t embedding = 0;  // width of the residual stream
  std::int32_t feed_forward = 0;
  std::int32_t heads = 0;
  std::int32_t kv_heads = 0;
  std::int32_t head_dim = 0;
  std::int32_t vocab = 0;
  float norm_epsilon = 0.0F;
  RopeParameters rope;
  std::int32_t window = 0;         // positions that a windowed layer sees; 0: no layer has a window
  std::int32_t window_period = 0;  // of the layers, every window_period-th has no window; 0: all have one
  float score_cap = 0.0F;          // attention scores become cap * tanh(score / cap); 0: they stay
  // Not from the file, see LoadOptions: positions that any layer may see, the first kSinkTokens among them; 0: no limit.
  std::int32_t kv_limit = 0;

  step::Visibility layer_visibility(std::int32_t layer) const;
  step::Visibility visibility() const;  // what some layer sees

  std::int64_t query_width() const { return std::int64_t{heads} * head_dim; }
  std::int64_t kv_width() const { return std::int64_t{kv_heads} * head_dim; }
};

// kUnsupported: a sound file of an architecture, or with a feature, that this build lacks. kBadFile: a key is missing, out of
// range, or contradicts another one; the message names the key, what was found and what was expected.
Result<HyperParameters> read_hyper_parameters(const files::GgufFile& file);

}  // namespace braid::model
