// Functions of single values, n at a time, in place: the same bits on all tiers.
#pragma once

#include "kernels/kernel_table.h"

#include <cstdint>

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

}  // namespace braid::model
