#include "model/convert.h"

#include "files/gguf_tensor_type.h"
#include "files/gguf_write.h"
#include "model/row_encoding.h"

#include <algorithm>
#include <fmt/format.h>
#include <vector>

namespace braid::model {
namespace {

using kernels::WeightType;

constexpr std::int64_t kRowsAtOnce = 256;

bool is_float(WeightType type) { return type == WeightType::kF32 || type == WeightType::kF16 || type == WeightType::kBF16; }

// Vectors, positions, routers and what lies in small tables stay as exact as they are.
bool stays_exact(const files::GgufTensor& tensor) {
  const auto ends = [&](std::string_view ending) { return tensor.name.ends_with(ending); };
  return tensor.shape.size() < 2 || ends(".bias") || ends("_norm.weight") || ends("ffn_gate_inp.weight") ||
         tensor.name == "position_embd.weight";
}

WeightType written_type(const files::GgufTensor& tensor, const ConvertOptions& options) {
  const auto stored = static_cast<WeightType>(tensor.type);
  if (!is_float(stored) && !tensor.coded) return stored;
  if (stays_exact(tensor)) return WeightType::kF32;
  const WeightType type = options.type.value_or(stored);
  return tensor.shape.front() % kernels::weight_format(type)->block_values == 0 ? type : WeightType::kF16;
}

// llama.cpp's number of what most of a file is.
std::uint64_t file_type(std::optional<WeightType> type) {
  switch (type.value_or(WeightType::kBF16)) {
    case WeightType::kF32:
      return 0;
    case WeightType::kF16:
      return 1;
    case WeightType::kQ8_0:
      return 7;
    case WeightType::kBF16:
      return 32;
    default:
      return 1024;  // guessed from the tensors
  }
}

// Sizes agree with bytes: what comes from a folder was checked by nobody else yet.
std::optional<Error> fault_of(const files::GgufFile& file, const files::GgufTensor& tensor) {
  const auto refuse = [&](ErrorCode code, std::string_view what) {
    return Error{code, fmt::format("{}: tensor {}: {}", file.name(), tensor.name, what), {}};
  };
  if (kernels::weight_format(static_cast<WeightType>(tensor.type)) == nullptr)
    return refuse(ErrorCode::kUnsupported, "its type cannot be read");
  if (!is_sound(tensor)) return refuse(ErrorCode::kBadFile, "its bytes are not what its shape takes");
  return std::nullopt;
}

}  // namespace

Result<void> write_model(const files::GgufFile& file, const std::string& path, const ConvertOptions& options, kernels::ThreadTeam& team,
                         const files::Progress& progress) {
  std::vector<files::GgufTensorHead> heads;
  std::uint64_t total = 0;
  for (const files::GgufTensor& tensor : file.tensors()) {
    if (auto fault = fault_of(file, tensor)) return *fault;
    const WeightType type = written_type(tensor, options);
    const std::size_t row_bytes = kernels::stored_row_bytes(*kernels::weight_format(type), tensor.shape.front());
    heads.push_back({tensor.name, static_cast<std::uint32_t>(type), tensor.shape, row_bytes * static_cast<std::uint64_t>(rows_of(tensor))});
    total += heads.back().bytes;
  }
  auto metadata = file.metadata();
  std::erase_if(metadata,
                [](const auto& pair) { return pair.first == "general.file_type" || pair.first == "general.quantization_version"; });
  metadata.emplace_back("general.file_type", file_type(options.type));
  metadata.emplace_back("general.quantization_version", std::uint64_t{2});
  auto out = files::GgufOutput::create(path, metadata, heads);
  if (!out) return out.error();
  std::uint64_t done = 0;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const files::GgufTensor& tensor = file.tensors()[i];
    const std::int64_t rows = rows_of(tensor);
    const std::size_t row_bytes = rows == 0 ? 0 : heads[i].bytes / static_cast<std::uint64_t>(rows);
    std::vector<std::byte> piece(row_bytes * static_cast<std::size_t>(std::min(rows, kRowsAtOnce)));
    for (std::int64_t first = 0; first < rows; first += kRowsAtOnce) {
      const std::int64_t count = std::min(kRowsAtOnce, rows - first);
      team.for_chunks(count, 4, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t row = begin; row < end; ++row)
          encode_row(tensor, first + row, tensor.shape.front(), static_cast<WeightType>(heads[i].type),
                     piece.data() + static_cast<std::size_t>(row) * row_bytes);
      });
      out->append(std::span(piece).first(static_cast<std::size_t>(count) * row_bytes));
      done += static_cast<std::uint64_t>(count) * row_bytes;
      if (progress) progress("tensors", done, total);
    }
    out->end_tensor();
    file.drop_pages(tensor);
  }
  return out->finish();
}

}  // namespace braid::model
