// From a pooled vector to the scores of a model's classes.
#pragma once

#include "files/gguf.h"
#include "kernels/kernel_table.h"

#include <cstdint>
#include <span>
#include <vector>

namespace braid::model {

class TensorReader;

// Its tensors are llama.cpp's: "cls.output.weight" [classes, width] and "cls.output.bias". Sums run in double and in order, so that all tiers
// give the same bits of the same vector.
class ClassHead {
 public:
  ClassHead() = default;

  // `older`, with what the file has of it. Faults are left in the reader.
  static ClassHead read(const files::GgufFile& file, TensorReader& reader, std::int64_t width, ClassHead older);

  // One class: how much more a model's next token is `yes` than `no`. output: [vocab, width].
  static ClassHead judging(const kernels::KernelTable& table, const kernels::PackedMatrix& output, std::int64_t yes, std::int64_t no);

  // One class: how much more this head says `one` than `other`.
  ClassHead difference(std::int64_t one, std::int64_t other) const;

  // weights: [classes, width]; bias: [classes], or empty.
  static ClassHead of(std::int64_t width, std::vector<float> weights, std::vector<float> bias);

  std::int64_t classes() const { return width_ > 0 ? static_cast<std::int64_t>(weights_.size()) / width_ : 0; }

  std::span<const float> weights() const { return weights_; }  // [classes, width]
  std::span<const float> bias() const { return bias_; }        // [classes], or empty

  // vector: [width], scores: [classes]
  void apply(std::span<const float> vector, std::span<float> scores) const;

 private:
  std::int64_t width_ = 0;
  std::vector<float> weights_;  // [classes, width]
  std::vector<float> bias_;     // [classes], or empty
};

}  // namespace braid::model
