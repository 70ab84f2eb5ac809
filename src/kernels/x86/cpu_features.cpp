#include "kernels/x86/cpu_features.h"

#include <cpuid.h>
#include <cstdint>
#include <cstring>
#include <sys/syscall.h>
#include <unistd.h>

namespace braid::kernels {
namespace {

struct Leaf {
  std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Leaf cpuid(std::uint32_t leaf, std::uint32_t subleaf) {
  Leaf result;
  __get_cpuid_count(leaf, subleaf, &result.eax, &result.ebx, &result.ecx, &result.edx);
  return result;
}

bool bit(std::uint32_t word, int index) { return ((word >> index) & 1U) != 0; }

// The register states that the operating system saves (XCR0).
std::uint64_t saved_states() {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<std::uint64_t>(high) << 32) | low;
}

constexpr std::uint64_t kYmmStates = 0x6;  // XMM, YMM
constexpr std::uint64_t kZmmStates = kYmmStates | 0xE0;
constexpr std::uint64_t kTileStates = 0x60000;  // TILECFG, TILEDATA

bool made_by_amd() {
  const Leaf vendor = cpuid(0, 0);
  char name[12];
  std::memcpy(name, &vendor.ebx, 4);
  std::memcpy(name + 4, &vendor.edx, 4);
  std::memcpy(name + 8, &vendor.ecx, 4);
  return std::memcmp(name, "AuthenticAMD", sizeof(name)) == 0 || std::memcmp(name, "HygonGenuine", sizeof(name)) == 0;
}

}  // namespace

bool request_tiles() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

CpuFeatures cpu_features() {
  CpuFeatures features;
  features.side_by_side = !made_by_amd();
  const Leaf basic = cpuid(1, 0);
  if (!bit(basic.ecx, 27)) return features;  // OSXSAVE: without it XGETBV faults
  const std::uint64_t states = saved_states();
  const Leaf extended = cpuid(7, 0);
  const Leaf more = cpuid(7, 1);
  const bool ymm = (states & kYmmStates) == kYmmStates;
  const bool zmm = (states & kZmmStates) == kZmmStates;
  const bool tiles = (states & kTileStates) == kTileStates;
  features.avx2_fma_f16c = ymm && bit(basic.ecx, 12) && bit(basic.ecx, 29) && bit(extended.ebx, 5);
  features.avx_vnni = ymm && bit(more.eax, 4);
  features.avx512 = features.avx2_fma_f16c && zmm && bit(extended.ebx, 16) && bit(extended.ebx, 17) && bit(extended.ebx, 30) &&
                    bit(extended.ebx, 31) && bit(extended.ecx, 11);
  features.avx512_bf16 = zmm && bit(more.eax, 5);
  features.amx =
      features.avx512_bf16 && features.avx512 && tiles && bit(extended.edx, 22) && bit(extended.edx, 24) && bit(extended.edx, 25);
  return features;
}

}  // namespace braid::kernels
