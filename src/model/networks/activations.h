// Functions of single values, n at a time, in place: the same bits on all tiers.
#pragma once

#include "kernels/kernel_table.h"

#include <cstdint>
#include <limits>

namespace braid::model {

void relu(float* x, std::int64_t n);
void sigmoid(const kernels::KernelTable& table, float* x, std::int64_t n);
void tanh(const kernels::KernelTable& table, float* x, std::int64_t n);
void silu(const kernels::KernelTable& table, float* x, std::int64_t n);
void gelu(const kernels::KernelTable& table, float* x, std::int64_t n);  // x * the normal distribution's function, not by tanh
void softplus(float* x, std::int64_t n);
// Of n values `stride` apart.
void softmax(float* x, std::int64_t n, std::int64_t stride);
void log_softmax(float* x, std::int64_t n, std::int64_t stride);

// The same of a line that is read in parts, from its first value to its last: all of it is looked at, then added, then written. Where there
// is no sum, because of a NaN or of an infinity, all that is written is no number.
class SoftmaxLine {
 public:
  void look(const float* x, std::int64_t n, std::int64_t stride);
  void add(const float* x, std::int64_t n, std::int64_t stride);
  void write(const float* x, std::int64_t n, std::int64_t stride, float* out) const;
  void write_log(const float* x, std::int64_t n, std::int64_t stride, float* out) const;

 private:
  bool has_sum() const;

  double largest_ = -std::numeric_limits<double>::infinity();
  double sum_ = 0.0;  // of exp(x - largest)
  bool has_nan_ = false;
};

}  // namespace braid::model
