// Register-resident loops of the multiply instructions, and a plain read: the ceilings that kernels are measured against.
// AVX-512 with VNNI but where a name says otherwise, and AMX for the last two; ask cpu_features() first.
#pragma once

#include <cstddef>
#include <cstdint>

namespace braid::kernels::perf {

// Reading goes through one stretch or through four side by side, whichever the processor does faster (KernelTable::side_by_side).
constexpr std::int64_t kReadAhead = 2048;  // bytes in each

// Each returns something that depends on the work, so that it cannot be dropped.
std::int64_t multiply_vnni(std::int64_t instructions);
// 32 products of signed bytes each time, as AVX2 has them: vpsignb, vpmaddubsw, vpmaddwd, vpaddd; and one vpdpbusd of AVX-VNNI.
std::int64_t multiply_signed_avx2(std::int64_t products);
std::int64_t multiply_vnni_avx2(std::int64_t products);
float multiply_fma(std::int64_t instructions);
template <int kStretches>
std::int64_t read_bytes(const std::byte* data, std::int64_t bytes);
template <int kStretches>
std::int64_t read_bytes_avx2(const std::byte* data, std::int64_t bytes);

// Tile products of 16 rows by 64 bytes by 16 outputs.
void multiply_int8_tiles(std::int64_t instructions);
void multiply_bf16_tiles(std::int64_t instructions);

}  // namespace braid::kernels::perf
