// fp8: E4M3 in "<stem>.weight" times ".weight_scale_inv" of blocks of 128 x 128 (DeepSeek), or ".weight_scale" of the matrix or of a row.
#include "model/prequantized/matrix_builder.h"
#include "model/prequantized/methods.h"

#include <algorithm>

namespace braid::model {

void read_fp8(const files::HfFolder& folder, FolderConfig& own, FolderConfig& config, Prequantized& out) {
  const std::vector<double> block = own.numbers("weight_block_size", 2);
  if (own.error) config.error = own.error;
  if (std::ranges::any_of(block, [](double size) { return !(size >= 1 && size <= 1 << 20); }))
    config.fail(ErrorCode::kBadFile, "weight_block_size is not two sizes");
  if (config.error) return;
  for (const std::string& stem : stems_of(folder, "weight")) {
    if (folder.tensors().at(stem + ".weight").dtype != "F8_E4M3") continue;
    MatrixBuilder matrix(folder, config, out, stem);
    matrix.byte_codes(*matrix.take("weight", {"F8_E4M3"}));
    if (config.error) return;
    matrix.parts.numbers = Numbers::kE4M3;
    if (const files::SafeTensor* scales = matrix.find("weight_scale_inv"); scales != nullptr && !block.empty()) {
      matrix.parts.scales = matrix.block_floats(*scales, static_cast<std::int64_t>(block[0]), static_cast<std::int64_t>(block[1]));
    } else if (scales != nullptr) {
      matrix.parts.scales = matrix.floats(*scales);
    } else if (const files::SafeTensor* own_scales = matrix.take("weight_scale", {"F32", "F16", "BF16"})) {
      matrix.parts.scales = matrix.floats(*own_scales);
    }
    matrix.finish();
    if (config.error) return;
  }
}

}  // namespace braid::model
