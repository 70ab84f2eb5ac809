// Matrix products of a small network: float32 chains, so that a row's result is the same alone and among others.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"
#include "model/networks/layer_tensors.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace braid::model {

// Strand only: it uses the team.
class NetworkProducts {
 public:
  // Both outlive it.
  NetworkProducts(const kernels::KernelTable& table, kernels::ThreadTeam& team) : table_(table), team_(team) {}

  const kernels::KernelTable& table() const { return table_; }

  // out[rows, outputs] = x[rows, inputs] * matrix + bias
  void multiply(const LayerMatrix& matrix, const float* x, std::int64_t rows, float* out) { multiply(matrix, matrix.bias, x, rows, out); }
  // Without the bias.
  void multiply_alone(const LayerMatrix& matrix, const float* x, std::int64_t rows, float* out) { multiply(matrix, {}, x, rows, out); }

 private:
  void multiply(const LayerMatrix& matrix, std::span<const float> bias, const float* x, std::int64_t rows, float* out);
  std::byte* prepare(const kernels::PackedMatrix& matrix, const float* x, std::int64_t rows, bool is_small);

  const kernels::KernelTable& table_;
  kernels::ThreadTeam& team_;
  std::vector<std::byte> prepared_;  // with room to begin at a cache line
};

}  // namespace braid::model
