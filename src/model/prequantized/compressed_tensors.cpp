// compressed-tensors (llm-compressor): integers or small floats as bytes in "<stem>.weight", or packed in ".weight_packed", with
// ".weight_scale" [rows, groups], [rows, 1] or one value. What activations would be rounded to is not done.
#include "model/prequantized/matrix_builder.h"
#include "model/prequantized/methods.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace braid::model {
namespace {

using Stream = MatrixBuilder::Stream;

// [rows, columns] of the matrix that was packed.
bool read_shape(MatrixBuilder& matrix, const files::SafeTensor& stored) {
  std::int64_t extents[2] = {0, 0};
  for (std::size_t i = 0; i < 2 && stored.shape == std::vector<std::int64_t>{2}; ++i) {
    std::int32_t narrow = 0;
    if (stored.dtype == "I64") std::memcpy(&extents[i], stored.bytes.data() + i * 8, 8);
    if (stored.dtype == "I32") std::memcpy(&narrow, stored.bytes.data() + i * 4, 4), extents[i] = narrow;
  }
  for (const std::int64_t extent : extents)
    if (extent < 1 || extent > 1 << 28) return matrix.fail("its weight_shape is not that of a matrix"), false;
  matrix.parts.rows = extents[0];
  matrix.parts.columns = extents[1];
  return true;
}

// Integers are stored with half of their range added, zeros likewise.
void read_packed_integers(MatrixBuilder& matrix, const files::SafeTensor& codes) {
  const files::SafeTensor* shape = matrix.take("weight_shape", {"I64", "I32"});
  const files::SafeTensor* zeros = matrix.find("weight_zero_point");
  const files::SafeTensor* indices = matrix.find("weight_g_idx");
  if (shape == nullptr || !read_shape(matrix, *shape)) return;
  CodedParts& parts = matrix.parts;
  int bits = 2;
  while (bits < 8 && (codes.shape.size() != 2 || (parts.columns * bits + 31) / 32 != codes.shape[1])) bits *= 2;
  parts.codes = matrix.packed(codes, bits, Stream::kAlongColumns, parts.rows, parts.columns, true);
  const files::SafeTensor* scales = matrix.take("weight_scale", {"F32", "F16", "BF16"});
  if (scales == nullptr) return;
  parts.scales = matrix.floats(*scales);
  parts.zero = 1 << (bits - 1);
  if (matrix.failed()) return;
  const std::int64_t groups = (parts.columns + parts.group - 1) / parts.group;
  if (zeros != nullptr && zeros->dtype == "I32") {
    parts.zeros = matrix.packed(*zeros, bits, Stream::kAlongRows, parts.rows, groups, true);
  } else if (zeros != nullptr) {
    matrix.byte_zeros(*zeros, groups, parts.zero);
  }
  if (indices != nullptr && !matrix.failed()) matrix.group_indices(*indices);
}

// Two E2M1 a byte. NVFP4: scales of 8 bits, over one for the whole matrix; MXFP4: powers of two.
void read_packed_floats(MatrixBuilder& matrix, const files::SafeTensor& codes) {
  matrix.word_codes(codes, 4);
  const files::SafeTensor* scales = matrix.take("weight_scale", {"F8_E4M3", "F8_E8M0", "U8"});
  const files::SafeTensor* global = matrix.find("weight_global_scale");
  if (scales == nullptr || matrix.failed()) return;
  matrix.parts.numbers = Numbers::kE2M1;
  matrix.byte_scales = GroupFloats::Type::kE8M0;
  matrix.parts.scales = matrix.floats(*scales);
  if (global == nullptr) return;
  if (global->dtype != "F32" || global->bytes.size() != 4) return matrix.fail("weight_global_scale is not one float");
  matrix.parts.scales.factor = 1.0F / GroupFloats{.bytes = global->bytes}.at(0, 0);
}

// Of the first group that has one.
std::vector<double> block_structure(const FolderConfig& own) {
  const auto groups = own.part("config_groups");
  for (const std::string_view name : {"group_0", "group_1", "group_2"}) {
    auto group = groups ? groups->part(name) : std::nullopt;
    auto weights = group ? group->part("weights") : std::nullopt;
    if (!weights || !weights->has({"block_structure"})) continue;
    std::vector<double> block = weights->numbers("block_structure", 2);
    const bool sound = !weights->error && std::ranges::all_of(block, [](double size) { return size >= 1 && size <= 1 << 20; });
    return sound ? block : std::vector<double>();
  }
  return {};
}

void read_bytes(MatrixBuilder& matrix, FolderConfig& own) {
  const files::SafeTensor* codes = matrix.take("weight", {"I8", "F8_E4M3"});
  const files::SafeTensor* scales = matrix.take("weight_scale", {"F32", "F16", "BF16"});
  if (codes == nullptr || scales == nullptr) return;
  matrix.byte_codes(*codes);
  if (matrix.failed()) return;
  CodedParts& parts = matrix.parts;
  const bool integers = codes->dtype == "I8";
  parts.numbers = integers ? Numbers::kIntegers : Numbers::kE4M3;
  parts.is_signed = integers;
  const bool in_blocks = scales->shape.size() == 2 && scales->shape[0] < parts.rows && scales->shape[0] > 1;
  if (in_blocks) {
    const std::vector<double> block = block_structure(own);
    if (block.empty()) return matrix.fail("its scales are of blocks, and config.json names no block_structure");
    parts.scales = matrix.block_floats(*scales, static_cast<std::int64_t>(block[0]), static_cast<std::int64_t>(block[1]));
  } else {
    parts.scales = matrix.floats(*scales);
  }
  const files::SafeTensor* zeros = matrix.find("weight_zero_point");
  if (zeros != nullptr && integers && !matrix.failed()) matrix.byte_zeros(*zeros, (parts.columns + parts.group - 1) / parts.group, 0);
}

}  // namespace

void read_compressed_tensors(const files::HfFolder& folder, FolderConfig& own, FolderConfig& config, Prequantized& out) {
  const auto sparsity = own.part("sparsity_config");
  FolderConfig sparse = sparsity.value_or(own);
  if (const std::string format = sparse.text({"format"}, "dense"); sparsity && format != "dense")
    return config.fail(ErrorCode::kUnsupported, fmt::format("its weights are sparse (\"{}\"), which this build does not read", format));
  if (own.part("transform_config") && own.part("transform_config")->part("config_groups"))
    return config.fail(ErrorCode::kUnsupported, "its weights are rotated (transform_config), which this build does not undo");
  for (const std::string& stem : stems_of(folder, "weight_scale")) {
    MatrixBuilder matrix(folder, config, out, stem);
    const files::SafeTensor* packed = matrix.find("weight_packed");
    if (packed == nullptr) {
      read_bytes(matrix, own);
    } else if (packed->dtype == "U8") {
      read_packed_floats(matrix, *packed);
    } else {
      read_packed_integers(matrix, *packed);
    }
    matrix.finish();
    if (config.error) return;
  }
}

}  // namespace braid::model
