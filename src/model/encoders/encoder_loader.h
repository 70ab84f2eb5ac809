// Tensors of an encoder to packed weights, each held against its shape.
#pragma once

#include "braid/result.h"
#include "kernels/kernel_table.h"
#include "model/encoders/encoder_shape.h"
#include "model/encoders/encoder_tensors.h"
#include "model/encoders/encoder_weights.h"
#include "model/networks/layer_tensors.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace braid::model {

// The first failure stays in `error`; later calls do no harm. All arguments outlive it.
class EncoderLoader {
 public:
  // What it has read is counted in `into`.
  EncoderLoader(const EncoderTensors& tensors, const kernels::KernelTable& table, kernels::WeightType type, EncoderWeights& into)
      : tensors_(tensors), table_(table), type_(type), into_(into) {}

  std::optional<Error> error;

  // All values of a tensor of just that shape.
  std::vector<float> need(const std::string& name, const std::vector<std::int64_t>& shape);
  // Rows of a table that has at least so many; an empty name: none.
  std::vector<float> rows(const std::string& name, std::int64_t least, std::int64_t width);
  // Likewise, of the embedded width, with what tasks add.
  EncoderTable table(const std::string& name, std::int64_t least, const EncoderShape& shape);
  EncoderNormWeights norm(const EncoderNorm& shape, std::int64_t width);
  LayerMatrix linear(const EncoderLinear& shape);
  EncoderLayerWeights layer(const EncoderLayer& layer, const EncoderShape& shape);

 private:
  EncoderMatrix matrix(const EncoderLinear& linear, const EncoderShape& shape);
  bool has_tasks(const std::string& weight, const EncoderShape& shape) const;
  LayerMatrix pack(const float* values, std::int64_t outputs, std::int64_t inputs, kernels::WeightType wanted);
  EncoderExpertsWeights experts(const EncoderExperts& shape, std::int64_t width, std::int64_t inner);
  std::vector<float> bias(const EncoderLinear& shape, bool whole);
  EncoderLimits limits(const std::string& prefix);

  const EncoderTensors& tensors_;
  const kernels::KernelTable& table_;
  const kernels::WeightType type_;
  EncoderWeights& into_;
};

}  // namespace braid::model
