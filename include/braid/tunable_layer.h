// A model's last layer with low-rank matrices beside some of its own, and a head of one number: what a text scores, and how that follows from
// these matrices. Training jobs fit them (LoRA, Hu et al. 2021).
#pragma once

#include "braid/tensor.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace braid {

struct LoraShape {
  static constexpr std::int32_t kMostRank = 16;

  std::int32_t rank = 8;
  float alpha = 16.0F;  // what is added counts alpha / rank times
  std::vector<std::string> modules = {"q_proj", "v_proj"};
};

// What is computed is begun, and goes on in pieces until it is over; then the next may be begun. All numbers follow from the arguments alone:
// the same bits in pieces of any size. One thread at a time.
class TunableLayer {
 public:
  virtual ~TunableLayer() = default;

  // The modules' matrices, then the head's weights, and last the head's bias.
  virtual std::size_t parameter_count() const = 0;
  // To begin with: what they add is nothing, and the head is the model's own, or zeros.
  virtual std::vector<float> first_parameters(std::uint64_t seed) const = 0;
  virtual bool has_own_head() const = 0;
  virtual std::int32_t layer() const = 0;  // its index

  virtual std::uint64_t bytes() const = 0;                         // that it takes
  virtual std::uint64_t text_bytes(std::size_t tokens) const = 0;  // of each text
  virtual std::uint64_t work_bytes(std::size_t tokens) const = 0;  // of the longest text, once: while it is at hand

  // The next text, counted from 0, which has a token at least. inputs: [tokens, width] of PooledOutput::kLastInputs.
  virtual void begin_text(std::vector<float> inputs) = 0;
  // What `parameters`, which stay where they are until the slope is over, too, make of a text.
  virtual void begin_score(std::size_t text, std::span<const float> parameters) = 0;
  // Adds the derivatives of the score that was computed last, times `factor`. gradient: [parameters]
  virtual void begin_slope(double factor, std::span<double> gradient) = 0;

  // About `work` multiplications, and the last of them in any case as a whole row. Returns how many it were.
  virtual std::size_t advance(std::size_t work) = 0;
  virtual bool is_over() const = 0;
  virtual double score() const = 0;

  // As PEFT names them.
  virtual std::vector<std::pair<std::string, Tensor>> tensors(std::span<const float> parameters) const = 0;
};

}  // namespace braid
