// An encoder that computes: whole texts to vectors, or to the scores of its head.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"
#include "model/encoders/encoder_shape.h"
#include "model/encoders/encoder_weights.h"
#include "model/rope.h"
#include "step/encoder.h"

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace braid::model {

// Immutable after construction. Strand only, but for its constant facts; tier and team outlive it.
class TextEncoder final : public step::Encoder {
 public:
  TextEncoder(EncoderShape shape, EncoderWeights weights, const kernels::KernelTable& table, kernels::ThreadTeam& team);

  const EncoderShape& shape() const { return shape_; }
  const EncoderWeights& weights() const { return weights_; }
  const kernels::KernelTable& table() const { return table_; }
  kernels::ThreadTeam& team() const { return team_; }
  const std::vector<RopeTable>& ropes() const { return ropes_; }
  float score_scale() const;
  // Numbers of a vector, behind the Dense modules; and classes of the head, 0 without one.
  std::int64_t vector_width() const;
  std::int64_t classes() const { return shape_.head ? shape_.head->out.outputs : 0; }

  std::unique_ptr<step::EncoderPass> begin(std::vector<step::EncoderText> texts) override;

 private:
  const EncoderShape shape_;
  const EncoderWeights weights_;
  const kernels::KernelTable& table_;
  kernels::ThreadTeam& team_;
  const std::vector<RopeTable> ropes_;
};

}  // namespace braid::model
