// Forms of all types, and the blocks of 32 values. In these, byte i of the codes holds the low bits of value i in its low half and
// those of value i + 16 in its high half.
#include "kernels/weight_block.h"

#include "kernels/half.h"

#include <cstring>

namespace braid::kernels {
namespace {

constexpr std::int32_t kTableBias = 128;

// Values of IQ4_NL's and IQ4_XS's codes, plus the bias.
constexpr std::uint8_t kIq4Table[16] = {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241};

// Twice the values of E2M1 floats, plus the bias; the scale is halved instead.
constexpr std::uint8_t kE2m1Table[16] = {128, 129, 130, 131, 132, 134, 136, 140, 128, 127, 126, 125, 124, 122, 120, 116};

void split_halves(const std::byte* stored, std::uint8_t* codes) {
  for (int i = 0; i < 16; ++i) {
    const auto both = std::to_integer<std::uint8_t>(stored[i]);
    codes[i] = both & 15;
    codes[i + 16] = both >> 4;
  }
}

// Bit i of 32 is the fifth bit of value i.
void add_fifth_bits(const std::byte* stored, std::uint8_t* codes) {
  std::uint32_t bits;
  std::memcpy(&bits, stored, sizeof(bits));
  for (int i = 0; i < 32; ++i) codes[i] = static_cast<std::uint8_t>(codes[i] | ((bits >> i) & 1U) << 4);
}

// Half of the E8M0 scale 2^(exponent - 127), which bf16 holds exactly, subnormals included.
std::uint16_t half_of_e8m0(std::byte exponent) {
  const auto e = std::to_integer<unsigned>(exponent);
  return static_cast<std::uint16_t>(e < 2 ? 0x20U << e : (e - 1) << 7);
}

}  // namespace

const BlockForm* block_form(WeightType type) noexcept {
  static constexpr BlockForm kQ8_0{kCodes8, ScaleForm::kF16, 128, nullptr};
  static constexpr BlockForm kQ4_0{kCodes4, ScaleForm::kF16, 8, nullptr};
  static constexpr BlockForm kQ4_1{kCodes4Minimums, ScaleForm::kF16, 0, nullptr};
  static constexpr BlockForm kQ5_0{kCodes5, ScaleForm::kF16, 16, nullptr};
  static constexpr BlockForm kQ5_1{kCodes5Minimums, ScaleForm::kF16, 0, nullptr};
  static constexpr BlockForm kQ2_K{kCodes2, ScaleForm::kSub, 0, nullptr, true};
  static constexpr BlockForm kQ3_K{kCodes3, ScaleForm::kSub, 4, nullptr};
  static constexpr BlockForm kQ4_K{kCodes4Parts, ScaleForm::kSub, 0, nullptr};
  static constexpr BlockForm kQ5_K{kCodes5Parts, ScaleForm::kSub, 0, nullptr};
  static constexpr BlockForm kQ6_K{kCodes6, ScaleForm::kSub, 32, nullptr};
  static constexpr BlockForm kIQ4_NL{kCodes4Table, ScaleForm::kF16, kTableBias, kIq4Table};
  static constexpr BlockForm kIQ4_XS{kCodes4TableParts, ScaleForm::kSub, kTableBias, kIq4Table};
  static constexpr BlockForm kMXFP4{kCodes4Table, ScaleForm::kBF16, kTableBias, kE2m1Table};
  static constexpr BlockForm kRotated8{kCodes8Grouped, ScaleForm::kGroup, 128, nullptr};
  switch (type) {
    case WeightType::kQ8_0:
      return &kQ8_0;
    case WeightType::kQ4_0:
      return &kQ4_0;
    case WeightType::kQ4_1:
      return &kQ4_1;
    case WeightType::kQ5_0:
      return &kQ5_0;
    case WeightType::kQ5_1:
      return &kQ5_1;
    case WeightType::kQ2_K:
      return &kQ2_K;
    case WeightType::kQ3_K:
      return &kQ3_K;
    case WeightType::kQ4_K:
      return &kQ4_K;
    case WeightType::kQ5_K:
      return &kQ5_K;
    case WeightType::kQ6_K:
      return &kQ6_K;
    case WeightType::kIQ4_NL:
      return &kIQ4_NL;
    case WeightType::kIQ4_XS:
      return &kIQ4_XS;
    case WeightType::kMXFP4:
      return &kMXFP4;
    case WeightType::kRotated8:
      return &kRotated8;
    case WeightType::kF32:
    case WeightType::kF16:
    case WeightType::kBF16:
      return nullptr;
  }
  return nullptr;
}

void split_block(WeightType type, const std::byte* stored, WeightBlock& block) noexcept {
  switch (type) {
    case WeightType::kQ8_0:  // scale, 32 signed codes
      block.scale = load_half(stored);
      for (int i = 0; i < 32; ++i) block.codes[i] = std::to_integer<std::uint8_t>(stored[2 + i]) ^ 0x80;
      return;
    case WeightType::kRotated8:  // scale, 64 signed codes
      block.scale = load_half(stored);
      for (int i = 0; i < 64; ++i) block.codes[i] = std::to_integer<std::uint8_t>(stored[2 + i]) ^ 0x80;
      return;
    case WeightType::kQ4_0:  // scale, codes
    case WeightType::kIQ4_NL:
      block.scale = load_half(stored);
      split_halves(stored + 2, block.codes);
      return;
    case WeightType::kQ4_1:  // scale, minimum, codes
      block.scale = load_half(stored);
      block.minimum = load_half(stored + 2);
      split_halves(stored + 4, block.codes);
      return;
    case WeightType::kQ5_0:  // scale, fifth bits, codes
      block.scale = load_half(stored);
      split_halves(stored + 6, block.codes);
      add_fifth_bits(stored + 2, block.codes);
      return;
    case WeightType::kQ5_1:  // scale, minimum, fifth bits, codes
      block.scale = load_half(stored);
      block.minimum = load_half(stored + 2);
      split_halves(stored + 8, block.codes);
      add_fifth_bits(stored + 4, block.codes);
      return;
    case WeightType::kMXFP4:  // exponent, codes
      block.scale = half_of_e8m0(stored[0]);
      split_halves(stored + 1, block.codes);
      return;
    case WeightType::kQ2_K:
    case WeightType::kQ3_K:
    case WeightType::kQ4_K:
    case WeightType::kQ5_K:
    case WeightType::kQ6_K:
    case WeightType::kIQ4_XS:
      return split_super_block(type, stored, block);
    case WeightType::kF32:
    case WeightType::kF16:
    case WeightType::kBF16:
      return;
  }
}

}  // namespace braid::kernels
