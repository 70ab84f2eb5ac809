#include "perf/model/float_model.h"

#include "files/gguf_write.h"
#include "kernels/encode.h"
#include "perf/model/recoded_weights.h"

#include <algorithm>
#include <fmt/format.h>

namespace braid::perf {

using kernels::WeightType;

std::span<float> FloatTensor::row(std::int64_t output) {
  return std::span(values).subspan(static_cast<std::size_t>(output * inputs()), static_cast<std::size_t>(inputs()));
}

void FloatTensor::scale_output(std::int64_t output, float by) {
  for (float& value : row(output)) value *= by;
}

void FloatTensor::scale_input(std::int64_t input, float by) {
  for (std::int64_t output = 0; output < outputs(); ++output) row(output)[static_cast<std::size_t>(input)] *= by;
}

Result<FloatModel> FloatModel::read(const files::GgufFile& file) {
  FloatModel model;
  model.metadata_ = file.metadata();
  std::erase_if(model.metadata_, [](const auto& pair) { return pair.first == "general.file_type"; });
  for (const files::GgufTensor& tensor : file.tensors()) {
    const auto type = static_cast<WeightType>(tensor.type);
    const kernels::WeightFormat* format = kernels::weight_format(type);
    if (format == nullptr || tensor.shape.empty() || tensor.shape.size() > 2)
      return Error{
          ErrorCode::kUnsupported, fmt::format("{}: tensor {} cannot be read as a matrix or vector", file.name(), tensor.name), {}};
    FloatTensor floats{tensor.name, tensor.shape, {}};
    floats.values.resize(static_cast<std::size_t>(floats.inputs() * floats.outputs()));
    const std::size_t row_bytes = kernels::stored_row_bytes(*format, floats.inputs());
    for (std::int64_t row = 0; row < floats.outputs(); ++row)
      kernels::dequantize_row(type, tensor.bytes.data() + static_cast<std::size_t>(row) * row_bytes, floats.inputs(),
                              floats.row(row).data());
    model.tensors_.push_back(std::move(floats));
  }
  return model;
}

FloatTensor* FloatModel::find(const std::string& name) {
  const auto found = std::ranges::find(tensors_, name, &FloatTensor::name);
  return found == tensors_.end() ? nullptr : &*found;
}

std::uint64_t FloatModel::number(const std::string& key) const {
  for (const auto& [name, value] : metadata_) {
    if (!name.ends_with(key)) continue;
    if (const auto* whole = std::get_if<std::uint64_t>(&value)) return *whole;
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<std::uint64_t>(*whole);
  }
  return 0;
}

void FloatModel::set_number(const std::string& key, std::uint64_t value) {
  for (auto& [name, old] : metadata_) {
    if (name.ends_with(key)) old = value;
  }
}

Result<void> FloatModel::write(const std::string& path, WeightType type) const {
  std::vector<files::GgufTensorHead> heads;
  const auto type_of = [&](const FloatTensor& tensor) {
    return tensor.shape.size() < 2 ? WeightType::kF32 : fitting_type(type, tensor.inputs());
  };
  for (const FloatTensor& tensor : tensors_) {
    const std::size_t row_bytes = kernels::stored_row_bytes(*kernels::weight_format(type_of(tensor)), tensor.inputs());
    heads.push_back(
        {tensor.name, static_cast<std::uint32_t>(type_of(tensor)), tensor.shape, row_bytes * static_cast<std::uint64_t>(tensor.outputs())});
  }
  std::vector<files::GgufEntry> entries;
  for (const auto& [key, value] : metadata_) entries.push_back({key, value});
  auto out = files::GgufOutput::create(path, entries, heads);
  if (!out) return out.error();
  for (const FloatTensor& tensor : tensors_) {
    std::vector<std::byte> row(kernels::stored_row_bytes(*kernels::weight_format(type_of(tensor)), tensor.inputs()));
    for (std::int64_t i = 0; i < tensor.outputs(); ++i) {
      kernels::encode_row(type_of(tensor), tensor.values.data() + i * tensor.inputs(), tensor.inputs(), row.data());
      out->append(row);
    }
    out->end_tensor();
  }
  return out->finish();
}

}  // namespace braid::perf
