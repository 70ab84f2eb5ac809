#include "model/convert.h"

#include "files/gguf_tensor_type.h"
#include "files/gguf_write.h"
#include "kernels/encode.h"
#include "model/row_encoding.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <utility>
#include <vector>

namespace braid::model {
namespace {

using kernels::WeightType;

constexpr std::int64_t kRowsAtOnce = 256;

bool is_float(WeightType type) { return type == WeightType::kF32 || type == WeightType::kF16 || type == WeightType::kBF16; }

// Vectors, positions, routers and what lies in small tables stay as exact as they are.
bool stays_exact(const files::GgufTensor& tensor) {
  const auto ends = [&](std::string_view ending) { return tensor.name.ends_with(ending); };
  return tensor.shape.size() < 2 || !ends("weight") || ends("_norm.weight") || ends("ffn_gate_inp.weight") || ends("conv1d.weight") ||
         ends("shortconv.conv.weight") || tensor.name == "position_embd.weight";
}

WeightType written_type(const files::GgufTensor& tensor, const ConvertOptions& options) {
  const auto stored = static_cast<WeightType>(tensor.type);
  if (!is_float(stored) && !tensor.coded) return stored;
  if (stays_exact(tensor)) return WeightType::kF32;
  const WeightType type = options.type.value_or(tensor.factors.empty() ? stored : WeightType::kF32);  // products have more bits
  return tensor.shape.front() % kernels::weight_format(type)->block_values == 0 ? type : WeightType::kF16;
}

// llama.cpp's number of what most of a file is.
std::uint64_t file_type(std::optional<WeightType> asked) {
  constexpr std::pair<WeightType, std::uint64_t> kNumbers[] = {
      {WeightType::kF32, 0}, {WeightType::kF16, 1}, {WeightType::kQ8_0, 7}, {WeightType::kBF16, 32}};
  for (const auto& [type, number] : kNumbers)
    if (type == asked.value_or(WeightType::kBF16)) return number;
  return 1024;  // guessed from the tensors
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

// How one tensor is written.
struct Encoding {
  WeightType type = WeightType::kF32;
  const float* importance = nullptr;  // [experts, columns], or none
  bool fitted = false;
};

void encode(const files::GgufTensor& tensor, std::int64_t row, const Encoding& encoding, std::byte* out) {
  const std::int64_t columns = tensor.shape.front();
  if (!encoding.fitted || static_cast<WeightType>(tensor.type) == encoding.type)
    return encode_row(tensor, row, columns, encoding.type, out);
  const float* importance = encoding.importance;
  if (importance != nullptr && tensor.shape.size() > 2) importance += row / tensor.shape[1] * columns;
  std::vector<float> values(static_cast<std::size_t>(columns));
  read_row(tensor, row, columns, values.data());
  kernels::encode_row_fitted(encoding.type, values.data(), importance, columns, out);
}

// Writes all tensors, each as `encodings` says.
Result<void> write_tensors(const files::GgufFile& file, const std::string& path, std::span<const Encoding> encodings,
                           std::uint64_t file_type, kernels::ThreadTeam& team, const files::Progress& progress) {
  std::vector<files::GgufTensorHead> heads;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < encodings.size(); ++i) {
    const files::GgufTensor& tensor = file.tensors()[i];
    const std::size_t row_bytes = kernels::stored_row_bytes(*kernels::weight_format(encodings[i].type), tensor.shape.front());
    heads.push_back({tensor.name, static_cast<std::uint32_t>(encodings[i].type), tensor.shape,
                     row_bytes * static_cast<std::uint64_t>(rows_of(tensor))});
    total += heads.back().bytes;
  }
  std::vector<files::GgufEntry> metadata = files::entries_of(file);
  std::erase_if(metadata, [](const files::GgufEntry& entry) {
    return entry.key == "general.file_type" || entry.key == "general.quantization_version" || entry.key.starts_with("split.");
  });
  metadata.push_back({"general.file_type", files::GgufValue(file_type)});
  metadata.push_back({"general.quantization_version", files::GgufValue(std::uint64_t{2})});
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
          encode(tensor, first + row, encodings[i], piece.data() + static_cast<std::size_t>(row) * row_bytes);
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

std::optional<Error> fault_of(const files::GgufFile& file) {
  for (const files::GgufTensor& tensor : file.tensors())
    if (auto fault = fault_of(file, tensor)) return fault;
  return std::nullopt;
}

// Null where the matrix says nothing of the tensor.
Result<const float*> importance_of(const files::GgufTensor& tensor, const files::ImportanceMatrix* matrix) {
  if (matrix == nullptr) return static_cast<const float*>(nullptr);
  const auto found = matrix->find(tensor.name);
  if (found == matrix->end()) return static_cast<const float*>(nullptr);
  const std::int64_t wanted = tensor.shape.front() * (tensor.shape.size() > 2 ? tensor.shape[2] : 1);
  if (static_cast<std::int64_t>(found->second.size()) == wanted) return found->second.data();
  return invalid_argument(fmt::format("the importance matrix has {} values for {}, which has {} inputs: it is that of another model",
                                      found->second.size(), tensor.name, wanted));
}

}  // namespace

Result<void> write_model(const files::GgufFile& file, const std::string& path, const ConvertOptions& options, kernels::ThreadTeam& team,
                         const files::Progress& progress) {
  if (auto fault = fault_of(file)) return *fault;
  std::vector<Encoding> encodings;
  for (const files::GgufTensor& tensor : file.tensors()) encodings.push_back({.type = written_type(tensor, options)});
  return write_tensors(file, path, encodings, file_type(options.type), team, progress);
}

Result<void> quantize_model(const files::GgufFile& file, const std::string& path, const QuantizeOptions& options, kernels::ThreadTeam& team,
                            const files::Progress& progress) {
  if (auto fault = fault_of(file)) return *fault;
  const std::vector<WeightType> types = types_of_mix(file, *options.mix, options.pure, options.importance != nullptr);
  std::vector<Encoding> encodings;
  bool any_importance = options.importance == nullptr;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const files::GgufTensor& tensor = file.tensors()[i];
    const auto stored = static_cast<WeightType>(tensor.type);
    const bool is_vector = stays_exact(tensor) && is_float(stored);
    const WeightType type = is_vector && types[i] == stored ? WeightType::kF32 : types[i];
    if (type != stored && !is_float(stored) && !tensor.coded && !options.from_quantized)
      return invalid_argument(
          fmt::format("{} is of {} already: quantising it again loses more than from the model's floats; "
                      "--allow-requantize does so all the same",
                      tensor.name, kernels::weight_format(stored)->name));
    const auto importance = importance_of(tensor, options.importance);
    if (!importance) return importance.error();
    any_importance = any_importance || *importance != nullptr;
    encodings.push_back({type, *importance, true});
  }
  if (!any_importance) return invalid_argument("the importance matrix names no tensor of this model: it is that of another model");
  return write_tensors(file, path, encodings, options.mix->file_type, team, progress);
}

}  // namespace braid::model
