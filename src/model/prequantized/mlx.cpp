// MLX (mlx.nn.quantize): "<stem>.weight" has codes in 32-bit words along the inputs, ".scales" and ".biases" are [rows, groups], and a
// value is code * scale + bias. The modes mxfp4, nvfp4 and mxfp8 have small floats instead of integers, and scales of 8 bits.
#include "model/prequantized/matrix_builder.h"
#include "model/prequantized/methods.h"

#include <fmt/format.h>

namespace braid::model {
namespace {

struct MlxMode {
  std::string_view name;
  Numbers numbers;
  int bits;
  int group;
  GroupFloats::Type scales;
};
constexpr MlxMode kFloatModes[] = {{"mxfp4", Numbers::kE2M1, 4, 32, GroupFloats::Type::kE8M0},
                                   {"nvfp4", Numbers::kE2M1, 4, 16, GroupFloats::Type::kE4M3},
                                   {"mxfp8", Numbers::kE4M3, 8, 32, GroupFloats::Type::kE8M0}};

}  // namespace

void read_mlx(const files::HfFolder& folder, FolderConfig& own, FolderConfig& config, Prequantized& out) {
  for (const std::string& stem : stems_of(folder, "scales")) {
    // A layer may have settings of its own, under its name.
    std::optional<FolderConfig> layer = own.part(stem);
    const std::string mode = layer ? layer->text({"mode"}, own.text({"mode"}, "affine")) : own.text({"mode"}, "affine");
    const auto setting = [&](std::string_view key, int fallback) {
      const std::int64_t whole = own.count({key}, fallback, 1, 1 << 20);
      return static_cast<int>(layer ? layer->count({key}, whole, 1, 1 << 20) : whole);
    };
    const auto* floats = std::ranges::find(kFloatModes, mode, &MlxMode::name);
    const bool affine = floats == std::end(kFloatModes);
    if (affine && mode != "affine") config.fail(ErrorCode::kUnsupported, fmt::format("its quantization has the mode \"{}\"", mode));
    const int bits = setting("bits", affine ? 4 : floats->bits);
    MatrixBuilder matrix(folder, config, out, stem);
    if (bits > 8) matrix.fail(fmt::format("codes of {} bits", bits));
    const files::SafeTensor* codes = matrix.take("weight", {"U32", "I32"});
    const files::SafeTensor* scales = matrix.take("scales", {"F32", "F16", "BF16", "U8"});
    const files::SafeTensor* biases = affine ? matrix.take("biases", {"F32", "F16", "BF16"}) : nullptr;
    if (config.error) return;
    matrix.word_codes(*codes, bits);
    matrix.parts.group = setting("group_size", affine ? 64 : floats->group);
    if (!affine) {
      matrix.parts.numbers = floats->numbers;
      matrix.byte_scales = floats->scales;
      if (bits != floats->bits) matrix.fail(fmt::format("{} has codes of {} bits, not {}", mode, floats->bits, bits));
    }
    matrix.parts.scales = matrix.floats(*scales);
    if (affine) matrix.parts.biases = matrix.floats(*biases);
    matrix.finish();
    if (own.error || (layer && layer->error)) config.error = own.error ? own.error : layer->error;
    if (config.error) return;
  }
}

}  // namespace braid::model
