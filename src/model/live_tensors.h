// Tells the tensors of weights that are computed with, where a TensorReader would read them.
#pragma once

#include "kernels/kernel_table.h"
#include "model/class_head.h"
#include "model/model_shape.h"
#include "model/tensor_reader.h"
#include "model/weights.h"

#include <cstdint>
#include <fmt/format.h>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace braid::model {

class LiveTensors {
 public:
  // `own_output`: the name of an output that is no other's matrix; empty: the embedding is the output.
  LiveTensors(const kernels::KernelTable& kernels, std::string own_output, TensorSink& sink)
      : kernels_(kernels), own_output_(std::move(own_output)), sink_(sink) {}

  std::optional<Error> error() const { return std::nullopt; }
  bool has(const std::string& name) const { return name == own_output_ + ".weight"; }
  void own(bool /*is_own*/) const {}
  std::uint32_t number_norm() const { return 0; }

  void vector(const std::string& name, std::int64_t size, Presence presence, const std::vector<float>& values) {
    if (presence != Presence::kAbsent && !values.empty()) tell(name, {size}, values);
  }
  void values(const std::string& name, std::int64_t size, const std::vector<float>& values) { tell(name, {size}, values); }
  void table(const std::string& name, std::int64_t size, std::int64_t rows, const std::vector<float>& values) {
    tell(name, {rows, size}, values);
  }
  void kernel(const std::string& name, std::int64_t width, std::int32_t taps, const std::vector<float>& values) {
    std::vector<float> stored(values.size());
    const auto columns = static_cast<std::size_t>(width);
    const auto rows = static_cast<std::size_t>(taps);
    for (std::size_t i = 0; i < stored.size(); ++i) stored[i] = values[i % rows * columns + i / rows];
    tell(name, {width, taps}, stored);
  }
  void matrix(const LinearShape& shape, const kernels::PackedMatrix& matrix, ReadBy /*use*/ = ReadBy::kProducts) {
    tell(shape.stored_outputs > 0 ? fmt::format("{}.weight[{}]", shape.name, shape.first_output) : shape.name + ".weight", matrix);
  }
  void expert(const LinearShape& shape, std::int32_t index, std::int32_t, const kernels::PackedMatrix& matrix,
              const std::vector<float>& values) {
    const LinearShape own = shape.apart ? shape.of_expert(index) : shape;
    const std::string place = shape.apart ? std::string() : fmt::format("[{}][{}]", index, shape.first_output);
    tell(own.name + ".weight" + place, matrix);
    if (!values.empty()) tell(own.name + ".bias" + place, {matrix.outputs}, values);
  }
  void bias(const LinearShape& shape, const std::vector<float>& values) {
    if (values.empty()) return;
    tell(shape.stored_outputs > 0 ? fmt::format("{}.bias[{}]", shape.name, shape.first_output) : shape.name + ".bias", {shape.outputs},
         values);
  }
  void head(const ClassHead& head) {
    if (head.classes() == 0) return;
    tell("cls.output.weight", {head.classes(), static_cast<std::int64_t>(head.weights().size()) / head.classes()}, head.weights());
    if (!head.bias().empty()) tell("cls.output.bias", {head.classes()}, head.bias());
  }
  void ignore(const std::string&) {}
  void refuse_others(const std::string&) {}

 private:
  void tell(const std::string& name, std::vector<std::int64_t> shape, std::span<const float> values) {
    sink_.begin(name, std::move(shape));
    sink_.add(values);
    sink_.end();
  }
  void tell(const std::string& name, const kernels::PackedMatrix& matrix) {
    if (matrix.data == nullptr) return;
    row_.resize(static_cast<std::size_t>(matrix.inputs));
    sink_.begin(name, {matrix.outputs, matrix.inputs});
    for (std::int64_t row = 0; row < matrix.outputs; ++row) {
      kernels_.unpack_row(matrix, row, row_.data());
      sink_.add(row_);
    }
    sink_.end();
  }

  const kernels::KernelTable& kernels_;
  const std::string own_output_;
  TensorSink& sink_;
  std::vector<float> row_;
};

}  // namespace braid::model
