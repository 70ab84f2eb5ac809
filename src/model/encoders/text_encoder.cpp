#include "model/encoders/text_encoder.h"

#include "model/encoders/encoder_pass.h"

#include <cmath>

namespace braid::model {
namespace {

std::vector<RopeTable> rotations_of(const EncoderShape& shape) {
  std::vector<RopeTable> tables;
  for (const EncoderRotary& rotary : shape.rotary) {
    RopeFrequencies frequencies;
    for (std::int32_t pair = 0; pair < shape.head_dim / 2; ++pair)
      frequencies.radians.push_back(std::pow(rotary.base, -2.0 * pair / shape.head_dim) / rotary.stretch);
    tables.emplace_back(frequencies, shape.context);
  }
  return tables;
}

}  // namespace

TextEncoder::TextEncoder(EncoderShape shape, EncoderWeights weights, const kernels::KernelTable& table, kernels::ThreadTeam& team)
    : shape_(std::move(shape)), weights_(std::move(weights)), table_(table), team_(team), ropes_(rotations_of(shape_)) {}

float TextEncoder::score_scale() const {
  return shape_.score_scale > 0.0F ? shape_.score_scale : static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape_.head_dim)));
}

std::int64_t TextEncoder::vector_width() const { return shape_.dense.empty() ? shape_.width : shape_.dense.back().linear.outputs; }

std::unique_ptr<step::EncoderPass> TextEncoder::begin(std::vector<step::EncoderText> texts) {
  return std::make_unique<TextEncoderPass>(*this, std::move(texts));
}

}  // namespace braid::model
