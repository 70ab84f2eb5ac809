#include "model/loaded_tensors.h"

#include "cache/prefix_index.h"
#include "kernels/weight_type.h"
#include "model/families/families.h"
#include "model/row_encoding.h"
#include "model/stored_values.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace braid::model {
namespace {

using kernels::WeightType;

std::optional<WeightType> float_type_of(std::string_view dtype) {
  if (dtype == "F32") return WeightType::kF32;
  if (dtype == "F16") return WeightType::kF16;
  if (dtype == "BF16") return WeightType::kBF16;
  return std::nullopt;
}

// Encodes rows of floats as a type that divides them.
files::GgufTensor encoded(const files::GgufTensor& given, WeightType type, std::vector<std::byte>& bytes) {
  const std::int64_t columns = given.shape.front();
  const std::size_t row_bytes = kernels::stored_row_bytes(*kernels::weight_format(type), columns);
  const std::int64_t rows = rows_of(given);
  bytes.resize(static_cast<std::size_t>(rows) * row_bytes);
  for (std::int64_t row = 0; row < rows; ++row)
    encode_row(given, row, columns, type, bytes.data() + static_cast<std::size_t>(row) * row_bytes);
  files::GgufTensor tensor;
  tensor.name = given.name;
  tensor.type = static_cast<std::uint32_t>(type);
  tensor.shape = given.shape;
  return tensor;
}

// Of which of a folder's tensors those of a file are made; of what was computed nothing is told.
std::map<std::string, std::string> origins_of(const files::GgufContents& contents,
                                              const std::map<std::string, files::SafeTensor>& tensors) {
  std::map<const std::byte*, std::string> by_end;
  for (const auto& [name, tensor] : tensors) by_end.emplace(tensor.bytes.data() + tensor.bytes.size(), name);
  std::map<std::string, std::string> origins;
  for (const files::GgufTensor& tensor : contents.tensors) {
    const auto found = by_end.upper_bound(tensor.bytes.data());
    if (found == by_end.end()) continue;
    const files::SafeTensor& origin = tensors.at(found->second);
    if (tensor.bytes.data() >= origin.bytes.data()) origins[tensor.name] = found->second;
  }
  return origins;
}

// What a family makes of tensors under a folder's names. Where it takes one in the place of another that is not there, it would make something
// else of them than it did of the folder.
Result<files::GgufContents> translated(const LoadedTensors& loaded, files::GgufContents contents, const std::string& file) {
  std::map<std::string, files::SafeTensor> tensors;
  for (const files::GgufTensor& tensor : contents.tensors) {
    const auto type = static_cast<WeightType>(tensor.type);
    const char* dtype = type == WeightType::kF32 ? "F32" : type == WeightType::kF16 ? "F16" : "BF16";
    tensors[tensor.name] = {dtype, loaded.tensors.at(tensor.name).shape, tensor.bytes};
  }
  const auto folder = files::HfFolder::of_tensors(loaded.folder, loaded.config, tensors, std::move(contents.sources));
  Result<files::GgufContents> own = read_folder(folder);
  if (!own) return own;
  if (!own->numbers.empty())
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: the tensor '{}' is a number of the model's shape, which cannot be replaced", file, own->numbers.front()),
                 {}};
  for (const auto& [name, origin] : origins_of(*own, tensors)) {
    const auto known = loaded.origins.find(name);
    if (known == loaded.origins.end() || known->second != origin)
      return Error{ErrorCode::kUnsupported,
                   fmt::format("{}: the tensor '{}' cannot be replaced alone: '{}' would be made of it, which has one of its own", file,
                               origin, name),
                   origin};
  }
  return own;
}

}  // namespace

LoadedTensors LoadedTensors::of(const files::GgufFile& file) {
  LoadedTensors loaded;
  for (const files::GgufTensor& tensor : file.tensors())
    loaded.tensors[tensor.name] = {tensor.type, {tensor.shape.rbegin(), tensor.shape.rend()}};
  return loaded;
}

Result<LoadedTensors> LoadedTensors::of(const files::HfFolder& folder) {
  Result<files::GgufContents> contents = read_folder(folder);
  if (!contents) return contents.error();
  LoadedTensors loaded;
  loaded.origins = origins_of(*contents, folder.tensors());
  loaded.folder = folder.path();
  loaded.config = folder.config();
  for (const auto& [name, tensor] : folder.tensors()) {
    const std::optional<WeightType> type = float_type_of(tensor.dtype);
    if (!type && loaded.fault.empty())
      loaded.fault = fmt::format("the tensor '{}' of {} is of type {}: weights of quantised folders are not replaced", name, folder.path(),
                                 tensor.dtype);
    loaded.tensors[name] = {static_cast<std::uint32_t>(type.value_or(WeightType::kF32)), tensor.shape};
  }
  return loaded;
}

Result<NewerTensors> newer_tensors(const LoadedTensors& loaded, std::shared_ptr<const files::ByteSource> file, bool partial) {
  if (!loaded.fault.empty()) return Error{ErrorCode::kUnsupported, loaded.fault, {}};
  const Result<files::SafeTensors> given = files::parse_safetensors(file->bytes());
  if (!given) return Error{given.error().code, fmt::format("{}: {}", file->name(), given.error().message), {}};
  TensorShapes shapes;
  for (const auto& [name, tensor] : loaded.tensors) shapes.emplace(name, tensor.shape);
  if (const Result<void> fits = hold_against(shapes, *given, partial, file->name()); !fits) return fits.error();
  files::GgufContents contents;
  contents.sources = {file};
  std::map<std::string, std::string> digests;
  for (const auto& [name, tensor] : given->tensors) {
    const std::optional<WeightType> type = float_type_of(tensor.dtype);
    if (!type)
      return Error{ErrorCode::kUnsupported,
                   fmt::format("{}: the tensor '{}' is of type {}; expected F32, F16 or BF16", file->name(), name, tensor.dtype), name};
    const LoadedTensors::Tensor& own = loaded.tensors.find(name)->second;
    files::GgufTensor stored;
    stored.name = name;
    stored.type = static_cast<std::uint32_t>(*type);
    stored.shape.assign(own.shape.rbegin(), own.shape.rend());
    if (stored.shape.empty()) stored.shape = {1};
    stored.bytes = tensor.bytes;
    const auto own_type = static_cast<WeightType>(own.type);
    if (!are_finite(*type, stored.bytes))
      return Error{ErrorCode::kBadFile, fmt::format("{}: the tensor '{}' holds a value that is infinite or no number", file->name(), name),
                   name};
    if (own.type != stored.type) {
      std::vector<std::byte> bytes;
      stored = encoded(stored, own_type, bytes);
      if (!are_finite(own_type, bytes))
        return Error{ErrorCode::kBadFile,
                     fmt::format("{}: the tensor '{}' holds a value that is too large for {}, which the model has it in", file->name(),
                                 name, kernels::weight_format(own_type)->name),
                     name};
      contents.sources.push_back(files::owned_bytes(std::move(bytes), file->name()));
      stored.bytes = contents.sources.back()->bytes();
    }
    const cache::PrefixKey key = cache::xxh3_key(stored.bytes);
    digests[name] = fmt::format("{:016x}{:016x}", key.high, key.low);
    contents.tensors.push_back(std::move(stored));
  }
  if (loaded.folder.empty()) return NewerTensors{files::GgufFile::from_contents(std::move(contents)), std::move(digests)};
  Result<files::GgufContents> own = translated(loaded, std::move(contents), file->name());
  if (!own) return own.error();
  if (own->sources.empty()) own->sources.push_back(std::move(file));
  return NewerTensors{files::GgufFile::from_contents(std::move(*own)), std::move(digests)};
}

}  // namespace braid::model
