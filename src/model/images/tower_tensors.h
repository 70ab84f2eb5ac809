// A tower's tensors by name, as matrices.
#pragma once

#include "model/encoders/encoder_tensors.h"
#include "model/images/tower_shape.h"

#include <string>
#include <vector>

namespace braid::model {

// Convolutions over patches as matrices of their planes (those of two frames, which show the same image, added up), tables without leading
// dimensions of one place, and what TowerShape::forms says. Borrows.
class TowerTensors final : public EncoderTensors {
 public:
  TowerTensors(const EncoderTensors& stored, const std::vector<TensorForm>& forms) : stored_(stored), forms_(forms) {}

  bool has(const std::string& name) const override { return stored_.has(name); }
  Result<EncoderTensor> read(const std::string& name) const override;

 private:
  Result<void> apply(const TensorForm& form, EncoderTensor& tensor) const;

  const EncoderTensors& stored_;
  const std::vector<TensorForm>& forms_;
};

}  // namespace braid::model
