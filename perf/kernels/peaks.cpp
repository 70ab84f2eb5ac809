#include "perf/kernels/peaks.h"

#include "kernels/amx/tiles.h"

#include <immintrin.h>

namespace braid::kernels::perf {
namespace {

constexpr int kChains = 16;

}  // namespace

std::int64_t multiply_vnni(std::int64_t instructions) {
  __m512i sum[kChains];
  for (auto& chain : sum) chain = _mm512_setzero_si512();
  __m512i a = _mm512_set1_epi8(3);
  const __m512i b = _mm512_set1_epi8(2);
  for (std::int64_t i = 0; i < instructions; i += kChains) {
    __asm__ volatile("" : "+v"(a));
#pragma GCC unroll 16
    for (int chain = 0; chain < kChains; ++chain) sum[chain] = _mm512_dpbusd_epi32(sum[chain], a, b);
  }
  __m512i all = sum[0];
  for (int chain = 1; chain < kChains; ++chain) all = _mm512_add_epi32(all, sum[chain]);
  return _mm512_reduce_add_epi32(all);
}

float multiply_fma(std::int64_t instructions) {
  __m512 sum[kChains];
  for (auto& chain : sum) chain = _mm512_setzero_ps();
  __m512 a = _mm512_set1_ps(1e-3F);
  const __m512 b = _mm512_set1_ps(1e-3F);
  for (std::int64_t i = 0; i < instructions; i += kChains) {
    __asm__ volatile("" : "+v"(a));
#pragma GCC unroll 16
    for (int chain = 0; chain < kChains; ++chain) sum[chain] = _mm512_fmadd_ps(a, b, sum[chain]);
  }
  __m512 all = sum[0];
  for (int chain = 1; chain < kChains; ++chain) all = _mm512_add_ps(all, sum[chain]);
  return _mm512_reduce_add_ps(all);
}

template <int kStretches>
std::int64_t read_bytes(const std::byte* data, std::int64_t bytes) {
  __m512i sum[kStretches];
  for (auto& chain : sum) chain = _mm512_setzero_si512();
  const std::int64_t stretch = bytes / kStretches / 64 * 64;
  for (std::int64_t i = 0; i < stretch; i += 64) {
#pragma GCC unroll 4
    for (int part = 0; part < kStretches; ++part) {
      const std::byte* from = data + part * stretch + i;
      _mm_prefetch(reinterpret_cast<const char*>(from + kReadAhead), _MM_HINT_T0);
      sum[part] = _mm512_xor_si512(sum[part], _mm512_load_si512(from));
    }
  }
  __m512i all = sum[0];
  for (int part = 1; part < kStretches; ++part) all = _mm512_xor_si512(all, sum[part]);
  return _mm512_reduce_add_epi64(all);
}
template std::int64_t read_bytes<1>(const std::byte*, std::int64_t);
template std::int64_t read_bytes<4>(const std::byte*, std::int64_t);

void multiply_int8_tiles(std::int64_t instructions) {
  using Tiles = amx::HardwareTiles;
  Tiles::configure(amx::tile_config(amx::kTileRows));
  for (std::int64_t i = 0; i < instructions; i += 4) {
    Tiles::multiply_signed<0, 4, 6>();
    Tiles::multiply_signed<1, 4, 7>();
    Tiles::multiply_signed<2, 5, 6>();
    Tiles::multiply_signed<3, 5, 7>();
  }
  Tiles::reset();
}

void multiply_bf16_tiles(std::int64_t instructions) {
  using Tiles = amx::HardwareTiles;
  Tiles::configure(amx::tile_config(amx::kTileRows));
  for (std::int64_t i = 0; i < instructions; i += 4) {
    Tiles::multiply_bf16<0, 4, 6>();
    Tiles::multiply_bf16<1, 4, 7>();
    Tiles::multiply_bf16<2, 5, 6>();
    Tiles::multiply_bf16<3, 5, 7>();
  }
  Tiles::reset();
}

}  // namespace braid::kernels::perf
