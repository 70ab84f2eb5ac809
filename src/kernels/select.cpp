#include "kernels/select.h"

#include "kernels/amx/tier.h"
#include "kernels/avx2/tier.h"
#include "kernels/avx512/tier.h"
#include "kernels/scalar/tier.h"

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

// Linux hands out the state of tiles on request only (arch_prctl, 5.16 and later): to the process, and to threads that it starts later.
bool request_tiles() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool made_by_amd() {
  const Leaf vendor = cpuid(0, 0);
  char name[12];
  std::memcpy(name, &vendor.ebx, 4);
  std::memcpy(name + 4, &vendor.edx, 4);
  std::memcpy(name + 8, &vendor.ecx, 4);
  return std::memcmp(name, "AuthenticAMD", sizeof(name)) == 0 || std::memcmp(name, "HygonGenuine", sizeof(name)) == 0;
}

// A tier's table for processors that read in order.
template <const KernelTable& kTable>
const KernelTable& in_order() {
  static const KernelTable table = [] {
    KernelTable copy = kTable;
    copy.side_by_side = false;
    return copy;
  }();
  return table;
}

}  // namespace

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

const KernelTable* kernel_table(Isa isa, std::string& missing) {
  const CpuFeatures features = cpu_features();
  switch (isa) {
    case Isa::kScalar:
      return &scalar::kTable;
    case Isa::kAvx2:
      if (features.avx2_fma_f16c) return features.side_by_side ? &avx2::kTable : &in_order<avx2::kTable>();
      missing = "this processor or operating system lacks AVX2, FMA or F16C";
      return nullptr;
    case Isa::kAvx512:
      if (features.avx512) return features.side_by_side ? &avx512::kTable : &in_order<avx512::kTable>();
      missing = "this processor or operating system lacks AVX-512 F, BW, VL, DQ or VNNI";
      return nullptr;
    case Isa::kAmx:
      if (features.amx && request_tiles()) return &amx::kTable;
      missing = features.amx ? "the operating system refuses AMX tile state to this process (arch_prctl ARCH_REQ_XCOMP_PERM)"
                             : "this processor or operating system lacks AMX tiles, INT8 or BF16, or AVX-512-BF16";
      return nullptr;
  }
  missing = "unknown instruction set";
  return nullptr;
}

const KernelTable& best_kernel_table() {
  std::string missing;
  for (const Isa isa : {Isa::kAmx, Isa::kAvx512, Isa::kAvx2}) {
    if (const KernelTable* table = kernel_table(isa, missing)) return *table;
  }
  return scalar::kTable;
}

std::optional<Isa> parse_isa(std::string_view name) {
  if (name == "scalar") return Isa::kScalar;
  if (name == "avx2") return Isa::kAvx2;
  if (name == "avx512") return Isa::kAvx512;
  if (name == "amx") return Isa::kAmx;
  return std::nullopt;
}

}  // namespace braid::kernels
