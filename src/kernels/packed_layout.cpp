#include "kernels/packed_layout.h"

#include "kernels/half.h"
#include "kernels/numerics.h"
#include "kernels/rotation.h"

#include <algorithm>
#include <bit>
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
void interleave_all(const std::byte* const* rows, std::int64_t inputs, std::byte* panel) {
  for (std::int64_t k = 0; k < inputs; ++k) interleave<kWidth>(rows, k * kWidth, panel + k * kWidth * kPanel);
}

void pack_float_panel(WeightType type, const std::byte* const* rows, std::int64_t used, std::int64_t inputs, std::byte* panel) {
  const std::int64_t width = type == WeightType::kF32 ? 4 : 2;
  width == 4 ? interleave_all<4>(rows, inputs, panel) : interleave_all<2>(rows, inputs, panel);
  for (std::int64_t k = 0; used < kPanel && k < inputs; ++k) {
    std::memset(panel + (k * kPanel + used) * width, 0, static_cast<std::size_t>((kPanel - used) * width));
  }
}

// The four codes of each group, cut to a plane's bits and put where they belong in that plane.
template <int kBits>
void pack_plane(const std::uint32_t (&groups)[8], int from_bit, std::byte* plane) {
  constexpr std::uint32_t kMask = 0x01010101U * ((1U << kBits) - 1U);
  for (int load = 0; load < kBits; ++load) {
    std::uint32_t four = 0;
    for (int g = load; g < 8; g += kBits) four |= ((groups[g] >> from_bit) & kMask) << (g - load);
    std::memcpy(plane + load * 64, &four, sizeof(four));
  }
}

// `block` is where the codes of the first group lie for this output.
void pack_codes(const CodeForm& form, const std::uint8_t* codes, std::byte* block) {
  std::uint32_t groups[8];
  std::memcpy(groups, codes, sizeof(groups));
  if (form.low_bits == 8) pack_plane<8>(groups, 0, block);
  if (form.low_bits == 4) pack_plane<4>(groups, 0, block);
  if (form.low_bits == 2) pack_plane<2>(groups, 0, block);
  std::byte* high = block + form.low_bits * 64;
  if (form.high_bits == 1) pack_plane<1>(groups, form.low_bits, high);
  if (form.high_bits == 2) pack_plane<2>(groups, form.low_bits, high);
}

// The scales of K block b, which is block `i` of the stored block.
void pack_scales(const BlockForm& form, const PanelLayout& layout, const WeightBlock& block, std::int64_t b, std::int64_t i,
                 std::int64_t lane, std::byte* panel) {
  std::byte* super = panel + (group_at(layout, panel, b) - panel);
  if (form.scales == ScaleForm::kGroup) {
    std::memcpy(super + lane * 2, &block.scale, 2);
    return;
  }
  std::byte* scales = panel + (scales_at(layout, panel, b) - panel);
  if (form.scales != ScaleForm::kSub) {
    std::memcpy(scales + lane * 2, &block.scale, 2);
    if (form.codes.minimums) std::memcpy(scales + kPanel * 2 + lane * 2, &block.minimum, 2);
    return;
  }
  const int parts = form.codes.parts;
  for (int part = 0; part < parts; ++part) {
    scales[part * kPanel + lane] = static_cast<std::byte>(block.scales[i * parts + part]);
    if (form.nibbles) {
      scales[part * kPanel + lane] |= static_cast<std::byte>(block.minimums[i * parts + part]) << 4;
    } else if (form.codes.minimums) {
      scales[(parts + part) * kPanel + lane] = static_cast<std::byte>(block.minimums[i * parts + part]);
    }
  }
  std::memcpy(super + lane * 2, &block.scale, 2);
  if (form.codes.minimums) std::memcpy(super + kPanel * 2 + lane * 2, &block.minimum, 2);
}

// Outputs past the last one weigh nothing: their parts are zeros.
void pack_block_panel(WeightType type, const std::byte* const* rows, std::int64_t used, std::int64_t inputs, const PanelLayout& layout,
                      std::byte* panel) {
  const BlockForm& form = *block_form(type);
  const WeightFormat& format = *weight_format(type);
  const std::int64_t blocks = format.block_values / kBlockValues;
  WeightBlock block;
  for (std::int64_t stored = 0; stored < inputs / format.block_values; ++stored) {
    for (std::int64_t lane = 0; lane < kPanel; ++lane) {
      if (lane < used) {
        split_block(type, rows[lane] + stored * format.block_bytes, block);
      } else {
        block = WeightBlock{};
      }
      for (std::int64_t i = 0; i < blocks; ++i) {
        const std::int64_t b = stored * blocks + i;
        pack_codes(form.codes, block.codes + i * kBlockValues, panel + (codes_at(layout, panel, b) - panel) + lane * 4);
        pack_scales(form, layout, block, b, i, lane, panel);
      }
    }
  }
}

// Four codes' bits of a plane at a time, put into their bytes above the bits that are there. `bits` divides 8.
void add_plane_bits(const std::byte* plane, int bits, std::int64_t lane, int above, std::uint32_t* codes) {
  const std::uint32_t each = ((1U << bits) - 1U) * 0x01010101U;
  for (int first = 0; first < 8; first += bits) {
    for (int i = 0; i < bits; ++i) {
      std::uint32_t four = 0;
      std::memcpy(&four, plane + i * 64 + lane * 4, sizeof(four));
      *codes++ |= (four >> first & each) << above;
    }
  }
}

void unpack_quantized(const BlockForm& form, const PanelLayout& layout, const std::byte* panel, std::int64_t lane, std::int64_t inputs,
                      float* out) {
  const int part_values = static_cast<int>(kBlockValues) / form.codes.parts;
  std::uint8_t codes[kBlockValues];
  for (std::int64_t b = 0; b < inputs / kBlockValues; ++b, out += kBlockValues) {
    unpack_codes(form, layout, panel, b, lane, codes);
    for (int i = 0; i < kBlockValues; ++i) {
      const float scale = unpack_scale(form, layout, panel, b, i / part_values, lane);
      const float product = static_cast<float>(codes[i] - form.bias) * scale;
      out[i] = form.codes.minimums ? product + unpack_minimum(form, layout, panel, b, i / part_values, lane) : product;
    }
  }
  if (form.codes.summing != Summing::kGroup) return;
  for (float* x = out - inputs; x != out; x += kRotatedValues) rotate(x, x);
}

void unpack_float(WeightType type, const PanelLayout& layout, const std::byte* panel, std::int64_t lane, std::int64_t inputs, float* out) {
  const std::int64_t width = layout.block_codes / kPanel;
  for (std::int64_t k = 0; k < inputs; ++k) {
    const std::byte* weight = panel + k * layout.block_codes + lane * width;
    if (type == WeightType::kF32) {
      std::memcpy(out + k, weight, sizeof(float));
    } else {
      const std::uint16_t bits = load_half(weight);
      out[k] = type == WeightType::kF16 ? f16_to_float(bits) : bf16_to_float(bits);
    }
  }
}

}  // namespace

bool is_quantized(WeightType type) noexcept { return block_form(type) != nullptr; }

PanelLayout panel_layout(WeightType type, std::int64_t inputs) noexcept {
  PanelLayout layout;
  const BlockForm* form = block_form(type);
  if (form == nullptr) {
    layout.block_codes = kPanel * (type == WeightType::kF32 ? 4 : 2);
    layout.bytes = round_up_64(inputs * layout.block_codes);
    return layout;
  }
  const std::int64_t blocks = inputs / kBlockValues;
  const std::int64_t kinds = form->codes.minimums ? 2 : 1;
  const bool sub = form->scales == ScaleForm::kSub;
  const bool grouped = form->codes.summing == Summing::kGroup;
  layout.block_codes = (form->codes.low_bits + form->codes.high_bits) * 64;
  layout.nibbles = form->nibbles;
  layout.block_scales = grouped ? 0 : (form->nibbles ? 1 : kinds) * kPanel * (sub ? form->codes.parts : 2);
  layout.scales = sub || grouped ? kinds * kPanel * 2 : 0;
  const std::int64_t group_blocks = blocks_of_group(form->codes);
  layout.group_shift = std::countr_zero(static_cast<std::uint64_t>(group_blocks));
  layout.codes = round_up_64(layout.scales + group_blocks * layout.block_scales);
  layout.group = layout.codes + group_blocks * layout.block_codes;
  layout.last_group = (group_count(form->codes, blocks) - 1) * group_blocks;
  const std::int64_t last_blocks = blocks - layout.last_group;
  layout.last_codes = round_up_64(layout.scales + last_blocks * layout.block_scales);
  layout.bytes = layout.last_group / group_blocks * layout.group + layout.last_codes + last_blocks * layout.block_codes;
  return layout;
}

PreparedLayout prepared_layout(WeightType type, std::int64_t inputs) noexcept {
  PreparedLayout layout;
  const BlockForm* form = block_form(type);
  if (form == nullptr) {
    layout.bytes = round_up_64(inputs * 4);
    return layout;
  }
  const std::int64_t blocks = inputs / kBlockValues;
  const std::int64_t groups = group_count(form->codes, blocks);
  const Summing summing = form->codes.summing;
  const std::int64_t parts = summing == Summing::kGroup ? groups : blocks * form->codes.parts;
  layout.scales = round_up_64(inputs);
  layout.starts = layout.scales + (summing == Summing::kBlock ? blocks : groups) * 4;
  layout.sums = layout.starts + parts * 4;
  const std::int64_t sum_bytes = form->scales == ScaleForm::kSub ? parts * 2 : blocks * 4;
  layout.bytes = round_up_64(layout.sums + (form->codes.minimums ? sum_bytes : 0));
  if (layout.bytes / 64 % 2 == 0) layout.bytes += 64;
  return layout;
}

void unpack_codes(const BlockForm& form, const PanelLayout& layout, const std::byte* panel, std::int64_t b, std::int64_t lane,
                  std::uint8_t* codes) noexcept {
  const std::byte* low = codes_at(layout, panel, b);
  std::uint32_t fours[kBlockValues / 4] = {};
  add_plane_bits(low, form.codes.low_bits, lane, 0, fours);
  if (form.codes.high_bits != 0) add_plane_bits(low + form.codes.low_bits * 64, form.codes.high_bits, lane, form.codes.low_bits, fours);
  std::memcpy(codes, fours, sizeof(fours));
  if (form.table == nullptr) return;
  for (int i = 0; i < kBlockValues; ++i) codes[i] = form.table[codes[i]];
}

std::int8_t unpack_sub(const BlockForm& form, const PanelLayout& layout, const std::byte* panel, std::int64_t b, int kind, int part,
                       std::int64_t lane) noexcept {
  const std::byte* scales = scales_at(layout, panel, b);
  if (!form.nibbles) return static_cast<std::int8_t>(scales[(kind * form.codes.parts + part) * kPanel + lane]);
  return static_cast<std::int8_t>(std::to_integer<unsigned>(scales[part * kPanel + lane]) >> (kind * 4) & 15U);
}

float unpack_super(const PanelLayout& layout, const std::byte* panel, std::int64_t b, int kind, std::int64_t lane) noexcept {
  const std::byte* super = group_at(layout, panel, b);
  return f16_to_float(load_half(super + (kind * kPanel + lane) * 2));
}

float unpack_scale(const BlockForm& form, const PanelLayout& layout, const std::byte* panel, std::int64_t b, int part,
                   std::int64_t lane) noexcept {
  const std::byte* scales = scales_at(layout, panel, b);
  if (form.scales == ScaleForm::kF16) return f16_to_float(load_half(scales + lane * 2));
  if (form.scales == ScaleForm::kBF16) return bf16_to_float(load_half(scales + lane * 2));
  if (form.scales == ScaleForm::kGroup) return unpack_super(layout, panel, b, 0, lane);
  return unpack_super(layout, panel, b, 0, lane) * static_cast<float>(unpack_sub(form, layout, panel, b, 0, part, lane));
}

float unpack_minimum(const BlockForm& form, const PanelLayout& layout, const std::byte* panel, std::int64_t b, int part,
                     std::int64_t lane) noexcept {
  if (!form.codes.minimums) return 0.0F;
  const std::byte* scales = scales_at(layout, panel, b);
  if (form.scales != ScaleForm::kSub) return f16_to_float(load_half(scales + kPanel * 2 + lane * 2));
  return unpack_super(layout, panel, b, 1, lane) * static_cast<float>(unpack_sub(form, layout, panel, b, 1, part, lane));
}

std::size_t packed_bytes(WeightType type, std::int64_t outputs, std::int64_t inputs) noexcept {
  return static_cast<std::size_t>((outputs + kPanel - 1) / kPanel * panel_layout(type, inputs).bytes);
}

std::size_t prepared_bytes(WeightType type, std::int64_t inputs, std::int64_t rows) noexcept {
  return static_cast<std::size_t>(prepared_layout(type, inputs).bytes * rows);
}

void pack(WeightType type, const std::byte* stored, std::int64_t outputs, std::int64_t inputs, std::byte* packed, std::int64_t panel_begin,
          std::int64_t panel_end) noexcept {
  const PanelLayout layout = panel_layout(type, inputs);
  const std::size_t row_bytes = stored_row_bytes(*weight_format(type), inputs);
  for (std::int64_t p = panel_begin; p < panel_end; ++p) {
    const std::byte* rows[kPanel];
    for (std::int64_t o = 0; o < kPanel; ++o) {
      const std::int64_t output = std::min(p * kPanel + o, outputs - 1);
      rows[o] = stored + static_cast<std::size_t>(output) * row_bytes;
    }
    std::byte* panel = packed + p * layout.bytes;
    const std::int64_t used = std::min<std::int64_t>(kPanel, outputs - p * kPanel);
    if (is_quantized(type)) {
      pack_block_panel(type, rows, used, inputs, layout, panel);
    } else {
      pack_float_panel(type, rows, used, inputs, panel);
    }
  }
}

void unpack_row(const PackedMatrix& weights, std::int64_t output, float* out) noexcept {
  const PanelLayout layout = panel_layout(weights.type, weights.inputs);
  const std::byte* panel = weights.data + output / kPanel * layout.bytes;
  const std::int64_t lane = output % kPanel;
  if (const BlockForm* form = block_form(weights.type)) {
    unpack_quantized(*form, layout, panel, lane, weights.inputs, out);
  } else {
    unpack_float(weights.type, layout, panel, lane, weights.inputs, out);
  }
}

}  // namespace braid::kernels
