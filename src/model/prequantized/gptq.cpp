// GPTQ (Frantar et al. 2022) and AWQ (Lin et al. 2023), in the layouts that AutoGPTQ, GPTQModel and AutoAWQ write: a value is
// (code - zero) * scale, all matrices are [inputs, outputs].
#include "model/prequantized/matrix_builder.h"
#include "model/prequantized/methods.h"

#include <fmt/format.h>

namespace braid::model {
namespace {

using Stream = MatrixBuilder::Stream;

// -1: all inputs are one.
std::int64_t group_of(FolderConfig& own, std::int64_t columns) {
  const std::int64_t group = own.count({"group_size", "q_group_size"}, 128, -1, 1 << 24);
  return group <= 0 ? columns : group;
}

}  // namespace

// qweight: words along the inputs, [words, outputs]; qzeros: words along the outputs, [groups, words], one less than the zero. With
// act-order g_idx tells the group of each input.
void read_gptq(const files::HfFolder& folder, FolderConfig& own, FolderConfig& config, Prequantized& out) {
  const auto bits = static_cast<int>(own.count({"bits"}, std::nullopt, 2, 8));
  const std::string format = own.text({"checkpoint_format"}, "gptq");
  if (format != "gptq" && format != "gptq_v2")
    config.fail(ErrorCode::kUnsupported, fmt::format("its GPTQ weights have the layout \"{}\", expected gptq or gptq_v2", format));
  for (const std::string& stem : stems_of(folder, "qweight")) {
    MatrixBuilder matrix(folder, config, out, stem);
    const files::SafeTensor* codes = matrix.take("qweight", {"I32", "U32"});
    const files::SafeTensor* zeros = matrix.take("qzeros", {"I32", "U32"});
    const files::SafeTensor* scales = matrix.take("scales", {"F32", "F16", "BF16"});
    const files::SafeTensor* indices = matrix.find("g_idx");
    if (own.error) config.error = own.error;
    if (config.error) return;
    if (codes->shape.size() != 2 || codes->shape[0] * 32 % bits != 0) return matrix.fail("its codes are no matrix");
    CodedParts& parts = matrix.parts;
    parts.rows = codes->shape[1];
    parts.columns = codes->shape[0] * 32 / bits;
    parts.group = group_of(own, parts.columns);
    parts.codes = matrix.packed(*codes, bits, Stream::kAlongColumns, parts.rows, parts.columns, false);
    parts.scales = matrix.transposed_floats(*scales);
    const std::int64_t groups = (parts.columns + parts.group - 1) / parts.group;
    parts.zeros = matrix.packed(*zeros, bits, Stream::kAlongRows, parts.rows, groups, false);
    parts.zeros_plus = format == "gptq" ? 1 : 0;
    if (indices != nullptr) matrix.group_indices(*indices);
    matrix.finish();
    if (config.error) return;
  }
}

// All words run along the outputs, their codes shuffled.
void read_awq(const files::HfFolder& folder, FolderConfig& own, FolderConfig& config, Prequantized& out) {
  const std::string version = own.text({"version"}, "gemm");
  const std::int64_t bits = own.count({"bits", "w_bit"}, 4, 1, 16);
  if ((version != "gemm" && version != "GEMM") || bits != 4)
    config.fail(ErrorCode::kUnsupported,
                fmt::format("its AWQ weights are of {} bits in the layout \"{}\", expected 4 bits and gemm", bits, version));
  for (const std::string& stem : stems_of(folder, "qweight")) {
    MatrixBuilder matrix(folder, config, out, stem);
    const files::SafeTensor* codes = matrix.take("qweight", {"I32", "U32"});
    const files::SafeTensor* scales = matrix.take("scales", {"F32", "F16", "BF16"});
    const files::SafeTensor* zeros = matrix.find("qzeros");
    if (own.error) config.error = own.error;
    if (config.error) return;
    if (codes->shape.size() != 2) return matrix.fail("its codes are no matrix");
    CodedParts& parts = matrix.parts;
    parts.rows = codes->shape[1] * 8;
    parts.columns = codes->shape[0];
    parts.group = group_of(own, parts.columns);
    parts.codes = matrix.packed(*codes, 4, Stream::kAlongRows, parts.rows, parts.columns, false);
    parts.codes.shuffled = true;
    parts.scales = matrix.transposed_floats(*scales);
    parts.zero = 8;
    if (zeros != nullptr) {
      const std::int64_t groups = (parts.columns + parts.group - 1) / parts.group;
      parts.zeros = matrix.packed(*zeros, 4, Stream::kAlongRows, parts.rows, groups, false);
      parts.zeros->shuffled = true;
    }
    matrix.finish();
    if (config.error) return;
  }
}

}  // namespace braid::model
