// A model that reads whole texts, as data: what a family makes of its configuration. Nothing else knows families.
#pragma once

#include "braid/generation_request.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace braid::model {

// kGeluQuick: x / (1 + exp(-1.702 x)).
enum class EncoderActivation : std::uint8_t { kNone, kGelu, kGeluTanh, kGeluQuick, kRelu, kSilu, kTanh };

// y = W x + b, named by its tensors. The rows [first, first + outputs) where several products lie in one tensor.
struct EncoderLinear {
  std::string weight;  // empty: there is none
  std::string bias;    // taken where the file has it
  std::int64_t outputs = 0;
  std::int64_t inputs = 0;
  std::int64_t first = 0;
  std::string limits =
      {};  // tensors "<limits>input_min", "input_max", "output_min" and "output_max", within which x and y are held; or empty

  explicit operator bool() const { return !weight.empty(); }
};

struct EncoderNorm {
  std::string weight;  // empty: there is none, but for `plain`
  std::string bias;    // zeros where the file has none
  bool rms = false;    // by the root of the mean square, without a mean
  float plus = 0.0F;   // to be added to the weights
  bool plain = false;  // without weights

  explicit operator bool() const { return plain || !weight.empty(); }
};

// Of the experts that a feed-forward chooses from, whose matrices lie one after the other: [experts * inner, width] each.
struct EncoderExperts {
  std::int32_t count = 0;  // 0: none
  std::int32_t used = 0;   // the best of them, weighed by the softmax over all
  EncoderLinear router;
  std::string up;  // as rows of inputs
  std::string down;
  bool down_turned = true;  // `down` is transposed: [experts * inner, width]; otherwise [experts, width, inner]
  std::string bias;         // [width], added once
};

// x is the residual stream. Norms that are not there change nothing.
struct EncoderLayer {
  EncoderNorm before_attention;  // of what attention reads
  EncoderLinear query, key, value, out;
  EncoderNorm query_norm, key_norm;  // of each head, or of all together (EncoderShape::norms_all_heads)
  EncoderNorm value_norm;            // of each head
  EncoderNorm after_attention;       // of what it gives, before that is added to x
  EncoderNorm joined_attention;      // of x, after it was added
  EncoderNorm rejoined_attention;    // of that plus what x was before
  EncoderNorm before_feed_forward;
  EncoderLinear gate;  // where there is one: act(gate) * up
  EncoderLinear up, down;
  EncoderExperts experts;  // in place of these
  EncoderNorm after_feed_forward;
  EncoderNorm joined_feed_forward;
  std::int32_t window = 0;    // a token sees so many before and behind it; 0: all
  std::int32_t rotary = 0;    // which of EncoderShape::rotary
  bool within_parts = false;  // a row of an image sees those of its own part of it alone
};

// The rotation of queries and keys by position.
struct EncoderRotary {
  double base = 10'000.0;
  double stretch = 1.0;  // positions are divided by it
};

// Scores that are the model's own, of a pooled vector.
struct EncoderHead {
  Pooling pooling = Pooling::kFirst;
  EncoderLinear dense;
  EncoderActivation activation = EncoderActivation::kNone;
  EncoderNorm norm;
  EncoderLinear out;
};

// What follows pooling (sentence-transformers' Dense).
struct EncoderDense {
  EncoderLinear linear;
  EncoderActivation activation = EncoderActivation::kNone;
};

struct EncoderShape {
  std::string family;
  std::int64_t vocabulary = 0;
  std::int64_t width = 0;
  std::int32_t heads = 0;
  std::int32_t kv_heads = 0;
  std::int32_t head_dim = 0;
  std::int32_t context = 0;  // tokens of a text
  double epsilon = 1e-12;
  float score_scale = 0.0F;  // of queries times keys; 0: 1 / sqrt(head_dim)

  std::string tokens;                  // [vocabulary, embedded]
  std::int64_t embedded = 0;           // the width of what is looked up
  float embedding_scale = 1.0F;        //
  std::string positions;               // [first_position + context, embedded], or empty
  std::int64_t first_position = 0;     // the row of the first token
  std::string types;                   // [type_count, embedded], or empty
  std::int64_t type_count = 0;         //
  EncoderNorm embedding_norm;          //
  EncoderLinear embedding_projection;  // to the width, where `embedded` is another

  std::vector<EncoderLayer> layers;
  EncoderActivation activation = EncoderActivation::kGelu;
  std::vector<EncoderRotary> rotary;  // empty: positions are not rotated
  std::string distance_bias;          // [buckets, heads] added to scores by distance, as T5 and MPNet have it; empty: none
  std::int64_t distance_buckets = 0;  //
  bool slopes = false;                // ALiBi, in both directions
  bool norms_all_heads = false;       // queries and keys of all heads have one norm
  EncoderNorm final_norm;

  // What texts may be for: each task adds a product of this rank to every matrix that has such parts.
  std::vector<std::string> tasks;
  std::int64_t task_rank = 0;
  float task_scale = 1.0F;

  std::vector<EncoderDense> dense;  // of vectors
  std::optional<EncoderHead> head;  // of class scores
};

}  // namespace braid::model
