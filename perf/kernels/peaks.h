// Register-resident loops of the multiply instructions, and a plain read: the ceilings that kernels are measured against.
// AVX-512 with VNNI but where a name says otherwise, and AMX for the last two; ask cpu_features() first.
#pragma once

#include <cstddef>
#include <cstdint>

namespace braid::kernels::perf {

// Reading goes through four stretches side by side: the processor fetches ahead by itself in each, and one alone is not the ceiling.
constexpr int kReadStretches = 4;
constexpr std::int64_t kReadAhead = 2048;  // bytes in each

// Each returns something that depends on the work, so that it cannot be dropped.
std::int64_t multiply_vnni(std::int64_t instructions);
float multiply_fma(std::int64_t instructions);
std::int64_t read_bytes(const std::byte* data, std::int64_t bytes);
std::int64_t read_bytes_avx2(const std::byte* data, std::int64_t bytes);

// Tile products of 16 rows by 64 bytes by 16 outputs.
void multiply_int8_tiles(std::int64_t instructions);
void multiply_bf16_tiles(std::int64_t instructions);

}  // namespace braid::kernels::perf
