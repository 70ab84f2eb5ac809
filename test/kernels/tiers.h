// What the kernel tests share: the tiers of this machine, random tensors, 64-byte aligned memory.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/select.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

namespace braid::kernels::test {

inline std::vector<const KernelTable*> machine_tiers() {
  std::vector<const KernelTable*> tiers;
  for (const Isa isa : {Isa::kScalar, Isa::kNeon, Isa::kAvx2, Isa::kAvx512, Isa::kAmx}) {
    std::string missing;
    if (const KernelTable* table = kernel_table(isa, missing)) tiers.push_back(table);
  }
  return tiers;
}

inline const KernelTable& scalar_tier() {
  std::string missing;
  return *kernel_table(Isa::kScalar, missing);
}

// Whether a tier rounds activations to bf16 before they meet such weights: the rows that it prepares have no room for floats.
inline bool rounds_to_bf16(const KernelTable& tier, WeightType type) {
  constexpr std::int64_t kInputs = 1024;
  return (type == WeightType::kF16 || type == WeightType::kBF16) && tier.prepared_bytes(type, kInputs, 1) < kInputs * sizeof(float);
}

// Hands out some ranges of panels one after the other.
class Ranges {
 public:
  Ranges(std::initializer_list<PanelRange> ranges) : ranges_(ranges) {}

  PanelSource source() {
    return {[](void* context, PanelRange& range) {
      auto& self = *static_cast<Ranges*>(context);
      if (self.next_ == self.ranges_.size()) return false;
      range = self.ranges_[self.next_++];
      return true;
            },
            this};
  }

 private:
  std::vector<PanelRange> ranges_;
  std::size_t next_ = 0;
};

inline void multiply_panels(const KernelTable& tier, const MatmulArgs& args, std::initializer_list<PanelRange> ranges) {
  tier.matmul(args, Ranges(ranges).source());
}
inline void multiply_all(const KernelTable& tier, const MatmulArgs& args) { multiply_panels(tier, args, {{0, args.weights->panels()}}); }

struct TierName {
  template <class ParamInfo>
  std::string operator()(const ParamInfo& tier) const {
    return tier.param->name;
  }
};

// Exactly `bytes` long, so that AddressSanitizer sees every access past the end.
class AlignedBytes {
 public:
  explicit AlignedBytes(std::size_t bytes) : size_(bytes), data_(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{64}))) {
    std::memset(data_, 0xA5, bytes);
  }
  ~AlignedBytes() { ::operator delete (data_, std::align_val_t{64}); }
  AlignedBytes(const AlignedBytes&) = delete;
  AlignedBytes& operator=(const AlignedBytes&) = delete;
  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_;
  std::byte* data_;
};

using Random = std::mt19937;

inline int uniform(Random& random, int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); }

inline std::vector<float> random_floats(Random& random, std::int64_t n, float deviation = 1.0F) {
  std::normal_distribution<float> normal(0.0F, deviation);
  std::vector<float> values(static_cast<std::size_t>(n));
  for (float& value : values) value = normal(random);
  return values;
}

inline constexpr WeightType kAllTypes[] = {
    WeightType::kF32,  WeightType::kF16,    WeightType::kBF16,   WeightType::kQ8_0,  WeightType::kQ4_0,    WeightType::kQ4_1,
    WeightType::kQ5_0, WeightType::kQ5_1,   WeightType::kQ2_K,   WeightType::kQ3_K,  WeightType::kQ4_K,    WeightType::kQ5_K,
    WeightType::kQ6_K, WeightType::kIQ4_NL, WeightType::kIQ4_XS, WeightType::kMXFP4, WeightType::kRotated8};

// Where a stored block of a quantised type has its f16 scales and minimums.
std::vector<std::size_t> scale_offsets(WeightType type);

// Rows as a file stores them: any codes, scales of a sensible size, the same for all blocks of a group where the type wants it.
std::vector<std::byte> random_stored(Random& random, WeightType type, std::int64_t outputs, std::int64_t inputs);

// Equal bits; +0 and -0 differ.
inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace braid::kernels::test
