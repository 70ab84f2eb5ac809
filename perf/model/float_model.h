// A GGUF file's tensors as floats, to be changed and written again.
#pragma once

#include "files/gguf.h"
#include "kernels/weight_type.h"

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace braid::perf {

struct FloatTensor {
  std::string name;
  std::vector<std::int64_t> shape;  // as GgufTensor's: a matrix is [inputs, outputs]
  std::vector<float> values;

  std::int64_t inputs() const { return shape[0]; }
  std::int64_t outputs() const { return shape.size() < 2 ? 1 : shape[1]; }
  std::span<float> row(std::int64_t output);
  void scale_output(std::int64_t output, float by);
  void scale_input(std::int64_t input, float by);
};

class FloatModel {
 public:
  // kUnsupported where a tensor is of a type that cannot be computed with, or has more than two dimensions.
  static Result<FloatModel> read(const files::GgufFile& file);

  // Null where there is none. Valid until the next add().
  FloatTensor* find(const std::string& name);
  void add(FloatTensor tensor) { tensors_.push_back(std::move(tensor)); }
  // A whole number of the metadata that ends in `key`; 0 without one.
  std::uint64_t number(const std::string& key) const;
  void set_number(const std::string& key, std::uint64_t value);

  // Matrices as `type`, or as what fits them (fitting_type), vectors as F32.
  Result<void> write(const std::string& path, kernels::WeightType type) const;

 private:
  std::vector<std::pair<std::string, files::GgufValue>> metadata_;
  std::vector<FloatTensor> tensors_;
};

}  // namespace braid::perf
