#include <kernels/half.h>
#include <kernels/numerics.h>
#include <kernels/packed_layout.h>

#include <algorithm>
#include <cstring>

namespace braid::kernels {
namespace {

constexpr std::int64_t round_up_64(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

// Copies `width` bytes of each of 16 rows, `step` bytes apart, next to each other: one group or one input of a panel.
template <int kWidth>
void interleave(const std::byte* const* rows, std::int64_t offset, std::byte* out) {
  for (int o = 0; o < kPanel; ++o) std::memcpy(out + o * kWidth, rows[o] + offset, kWidth);
}

template <int kWidth>
void pack_float_panel(const std::byte* const* rows, std::int64_t inputs, std::byte* panel) {
  for (std::int64_t k = 0; k < inputs; ++k) interleave<kWidth>(rows, k * kWidth, panel + k * kWidth * kPanel);
}

// Stored blocks are a f16 scale, then code bytes; kFlip turns signed codes into unsigned ones.
template <int kGroups, std::uint32_t kFlip>
void pack_block_panel(const std::byte* const* rows, std::int64_t inputs, const PanelLayout& layout, std::byte* panel) {
  constexpr std::int64_t kStoredBytes = 2 + kGroups * 4;
  for (std::int64_t b = 0; b < inputs / kBlockValues; ++b) {
    interleave<2>(rows, b * kStoredBytes, panel + layout.scales + b * 2 * kPanel);
    std::byte* codes = panel + b * layout.block_codes;
    for (int g = 0; g < kGroups; ++g) {
      for (int o = 0; o < kPanel; ++o) {
        std::uint32_t four;
        std::memcpy(&four, rows[o] + b * kStoredBytes + 2 + g * 4, 4);
        four ^= kFlip;
        std::memcpy(codes + g * 64 + o * 4, &four, 4);
      }
    }
  }
}

void pack_panel(WeightType type, const std::byte* const* rows, std::int64_t inputs, const PanelLayout& layout, std::byte* panel) {
  switch (type) {
    case WeightType::kF32:
      pack_float_panel<4>(rows, inputs, panel);
      return;
    case WeightType::kF16:
    case WeightType::kBF16:
      pack_float_panel<2>(rows, inputs, panel);
      return;
    case WeightType::kQ8_0:
      pack_block_panel<8, 0x80808080U>(rows, inputs, layout, panel);
      return;
    case WeightType::kQ4_0:
      pack_block_panel<4, 0>(rows, inputs, layout, panel);
      return;
  }
}

// Outputs past the last one weigh nothing: their scale, or float weight, is zero.
void clear_padding(WeightType type, std::int64_t used, std::int64_t inputs, const PanelLayout& layout, std::byte* panel) {
  const bool quantized = is_quantized(type);
  const std::int64_t width = quantized ? 2 : layout.block_codes / kPanel;
  const std::int64_t groups = quantized ? inputs / kBlockValues : inputs;
  std::byte* first = quantized ? panel + layout.scales : panel;
  for (std::int64_t i = 0; i < groups; ++i) {
    std::memset(first + (i * kPanel + used) * width, 0, static_cast<std::size_t>((kPanel - used) * width));
  }
}

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

void unpack_quantized(WeightType type, const PanelLayout& layout, const std::byte* panel, std::int64_t lane, std::int64_t inputs,
                      float* out) {
  const std::int32_t bias = code_bias(type);
  for (std::int64_t k = 0; k < inputs; ++k) {
    const std::int64_t b = k / kBlockValues;
    const std::int64_t i = k % kBlockValues;
    const float scale = f16_to_float(load<std::uint16_t>(panel + layout.scales + (b * kPanel + lane) * 2));
    const std::byte* codes = panel + b * layout.block_codes + lane * 4 + i % 4;
    const int code = type == WeightType::kQ8_0 ? std::to_integer<int>(codes[i / 4 * 64])
                                               : (std::to_integer<int>(codes[i / 4 % 4 * 64]) >> (i < 16 ? 0 : 4)) & 15;
    out[k] = static_cast<float>(code - bias) * scale;
  }
}

void unpack_float(WeightType type, const PanelLayout& layout, const std::byte* panel, std::int64_t lane, std::int64_t inputs,
                  float* out) {
  const std::int64_t width = layout.block_codes / kPanel;
  for (std::int64_t k = 0; k < inputs; ++k) {
    const std::byte* weight = panel + k * layout.block_codes + lane * width;
    if (type == WeightType::kF32) {
      out[k] = load<float>(weight);
    } else {
      const auto bits = load<std::uint16_t>(weight);
      out[k] = type == WeightType::kF16 ? f16_to_float(bits) : bf16_to_float(bits);
    }
  }
}

}  // namespace

bool is_quantized(WeightType type) noexcept { return type == WeightType::kQ8_0 || type == WeightType::kQ4_0; }

std::int32_t code_bias(WeightType type) noexcept { return type == WeightType::kQ8_0 ? 128 : 8; }

PanelLayout panel_layout(WeightType type, std::int64_t inputs) noexcept {
  PanelLayout layout;
  if (is_quantized(type)) {
    const std::int64_t blocks = inputs / kBlockValues;
    layout.block_codes = type == WeightType::kQ8_0 ? 512 : 256;
    layout.scales = blocks * layout.block_codes;
    layout.bytes = layout.scales + round_up_64(blocks * 2 * kPanel);
  } else {
    layout.block_codes = kPanel * (type == WeightType::kF32 ? 4 : 2);
    layout.bytes = round_up_64(inputs * layout.block_codes);
  }
  return layout;
}

PreparedLayout prepared_layout(WeightType type, std::int64_t inputs) noexcept {
  PreparedLayout layout;
  if (!is_quantized(type)) {
    layout.bytes = round_up_64(inputs * 4);
    return layout;
  }
  const std::int64_t blocks = inputs / kBlockValues;
  layout.scales = round_up_64(inputs);
  layout.starts = layout.scales + blocks * 4;
  layout.bytes = round_up_64(layout.starts + blocks * 4);
  return layout;
}

std::size_t packed_bytes(WeightType type, std::int64_t outputs, std::int64_t inputs) noexcept {
  return static_cast<std::size_t>((outputs + kPanel - 1) / kPanel * panel_layout(type, inputs).bytes);
}

std::size_t prepared_row_bytes(WeightType type, std::int64_t inputs) noexcept {
  return static_cast<std::size_t>(prepared_layout(type, inputs).bytes);
}

void pack(WeightType type, const std::byte* stored, std::int64_t outputs, std::int64_t inputs, std::byte* packed,
          std::int64_t panel_begin, std::int64_t panel_end) noexcept {
  const PanelLayout layout = panel_layout(type, inputs);
  const std::size_t row_bytes = stored_row_bytes(*weight_format(type), inputs);
  for (std::int64_t p = panel_begin; p < panel_end; ++p) {
    const std::byte* rows[kPanel];
    for (std::int64_t o = 0; o < kPanel; ++o) {
      const std::int64_t output = std::min(p * kPanel + o, outputs - 1);
      rows[o] = stored + static_cast<std::size_t>(output) * row_bytes;
    }
    std::byte* panel = packed + p * layout.bytes;
    pack_panel(type, rows, inputs, layout, panel);
    const std::int64_t used = std::min<std::int64_t>(kPanel, outputs - p * kPanel);
    if (used < kPanel) clear_padding(type, used, inputs, layout, panel);
  }
}

void unpack_row(const PackedMatrix& weights, std::int64_t output, float* out) noexcept {
  const PanelLayout layout = panel_layout(weights.type, weights.inputs);
  const std::byte* panel = weights.data + output / kPanel * layout.bytes;
  const std::int64_t lane = output % kPanel;
  if (is_quantized(weights.type)) {
    unpack_quantized(weights.type, layout, panel, lane, weights.inputs, out);
  } else {
    unpack_float(weights.type, layout, panel, lane, weights.inputs, out);
  }
}

}  // namespace braid::kernels
