#include "model/tensor_reader.h"

#include "files/gguf_tensor_type.h"
#include "kernels/weight_block.h"
#include "model/row_encoding.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <span>

namespace braid::model {
namespace {

constexpr std::size_t kPackedAlignment = 64;

std::string type_name(std::uint32_t type) {
  const files::GgufTensorType* known = files::gguf_tensor_type(type);
  return known != nullptr ? known->name : fmt::format("number {}", type);
}

// A bias that adds nothing, as some quantisers write it for every matrix.
bool is_zero_bias(const files::GgufTensor& tensor) {
  return tensor.name.ends_with(".bias") && std::ranges::all_of(tensor.bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

}  // namespace

void TensorReader::fail(ErrorCode code, const std::string& tensor, const std::string& message) {
  if (!error_) error_ = Error{code, fmt::format("{}: tensor {}: {}", file_.name(), tensor, message), {}};
}

const files::GgufTensor* TensorReader::find(const std::string& name, std::initializer_list<std::int64_t> shape, Presence presence) {
  const files::GgufTensor* tensor = file_.tensor(name);
  if (tensor == nullptr) {
    if (presence == Presence::kRequired && !partial_)
      fail(ErrorCode::kBadFile, name, fmt::format("is missing, expected shape [{}]", fmt::join(shape, ", ")));
    return nullptr;
  }
  if (presence == Presence::kAbsent) return nullptr;
  seen_.insert(name);
  std::span<const std::int64_t> found = tensor->shape;
  while (found.size() > shape.size() && found.back() == 1) found = found.first(found.size() - 1);  // as some converters leave them
  if (!std::ranges::equal(found, shape)) {
    fail(ErrorCode::kBadFile, name, fmt::format("found shape [{}], expected [{}]", fmt::join(tensor->shape, ", "), fmt::join(shape, ", ")));
    return nullptr;
  }
  const kernels::WeightFormat* format = kernels::weight_format(static_cast<kernels::WeightType>(tensor->type));
  if (format == nullptr || files::gguf_tensor_type(tensor->type) == nullptr) {
    fail(ErrorCode::kUnsupported, name, fmt::format("found type {}, which this build cannot compute with", type_name(tensor->type)));
    return nullptr;
  }
  if (!is_sound(*tensor)) {
    fail(ErrorCode::kBadFile, name,
         fmt::format("found {} bytes, which is not what [{}] values of type {} take", tensor->bytes.size(), fmt::join(shape, ", "),
                     format->name));
    return nullptr;
  }
  return tensor;
}

void TensorReader::vector(const std::string& name, std::int64_t size, Presence presence, std::vector<float>& out) {
  const files::GgufTensor* tensor = find(name, {size}, presence);
  if (tensor == nullptr) return;
  out.resize(static_cast<std::size_t>(size));
  read_row(*tensor, 0, size, out.data());
}

void TensorReader::values(const std::string& name, std::int64_t size, std::vector<float>& out) {
  const files::GgufTensor* stored = file_.tensor(name);
  if (stored == nullptr || stored->shape.empty()) return vector(name, size, Presence::kRequired, out);
  const std::int64_t columns = stored->shape.front();
  if (columns < 1 || columns > size || size % columns != 0)
    return vector(name, size, Presence::kRequired, out);  // which says what is wrong
  if (stored->shape.size() == 1) return vector(name, size, Presence::kRequired, out);
  table(name, columns, size / columns, out);
}

void TensorReader::table(const std::string& name, std::int64_t size, std::int64_t rows, std::vector<float>& out) {
  const files::GgufTensor* tensor = find(name, {size, rows}, Presence::kRequired);
  if (tensor == nullptr) return;
  out.resize(static_cast<std::size_t>(size * rows));
  for (std::int64_t row = 0; row < rows; ++row) read_row(*tensor, row, size, out.data() + row * size);
}

void TensorReader::kernel(const std::string& name, std::int64_t width, std::int32_t taps, std::vector<float>& out) {
  std::vector<float> stored;
  table(name, taps, width, stored);
  if (stored.empty()) return;
  const auto columns = static_cast<std::size_t>(width);
  const auto rows = static_cast<std::size_t>(taps);
  out.resize(stored.size());
  for (std::size_t i = 0; i < stored.size(); ++i) out[i % rows * columns + i / rows] = stored[i];
}

void TensorReader::matrix(const LinearShape& shape, kernels::PackedMatrix& out, ReadBy use) {
  const std::int64_t stored_outputs = shape.stored_outputs > 0 ? shape.stored_outputs : shape.outputs;
  const files::GgufTensor* tensor = find(shape.name + ".weight", {shape.inputs, stored_outputs}, Presence::kRequired);
  if (tensor != nullptr) return note(*tensor, shape, 0, use, out);
  kept_.push_back(begin_of(out, use));
}

kernels::PanelRange TensorReader::panels_of(const kernels::PackedMatrix& matrix, ReadBy use) const {
  return use == ReadBy::kRows ? kernels::PanelRange{0, matrix.panels()} : share_.panels(matrix.panels());
}

// Kernels count from the first panel of all, which another rank may have.
const std::byte* TensorReader::begin_of(const kernels::PackedMatrix& matrix, ReadBy use) const {
  return matrix.data == nullptr ? nullptr : matrix.data + bytes_of(matrix, {0, panels_of(matrix, use).begin});
}

void TensorReader::note(const files::GgufTensor& tensor, const LinearShape& shape, std::int64_t skipped, ReadBy use,
                        kernels::PackedMatrix& out) {
  const kernels::WeightType type = packed_type(tensor, shape);
  const std::uint32_t number = partial_ ? out.number : ++numbered_;
  out = {.type = type, .outputs = shape.outputs, .inputs = shape.inputs, .data = nullptr, .number = number};
  if (!is_own_) return;
  const kernels::PanelRange panels = panels_of(out, use);
  matrices_.push_back({&tensor, shape, skipped, &out, packed_bytes_, panels});
  packed_bytes_ += (bytes_of(out, panels) + kPackedAlignment - 1) / kPackedAlignment * kPackedAlignment;
}

std::size_t TensorReader::bytes_of(const kernels::PackedMatrix& matrix, const kernels::PanelRange& panels) const {
  return table_.packed_bytes(matrix.type, (panels.end - panels.begin) * kernels::kPanel, matrix.inputs);
}

void TensorReader::expert(const LinearShape& shape, std::int32_t index, std::int32_t count, kernels::PackedMatrix& out,
                          std::vector<float>& bias) {
  if (shape.apart) {
    const LinearShape own = shape.of_expert(index);
    matrix(own, out);
    return this->bias(own, bias);
  }
  const std::int64_t stored = shape.stored_outputs > 0 ? shape.stored_outputs : shape.outputs;
  const std::int64_t first = index * stored + shape.first_output;
  if (const auto* tensor = find(shape.name + ".weight", {shape.inputs, stored, count}, Presence::kRequired)) {
    note(*tensor, shape, index * stored, ReadBy::kProducts, out);
  } else {
    kept_.push_back(begin_of(out, ReadBy::kProducts));
  }
  if (shape.bias == Presence::kAbsent || (shape.bias == Presence::kOptional && !has(shape.name + ".bias"))) return;
  std::vector<float> all;
  table(shape.name + ".bias", stored, count, all);
  if (!all.empty()) bias.assign(all.begin() + first, all.begin() + first + shape.outputs);
}

void TensorReader::bias(const LinearShape& shape, std::vector<float>& out) {
  if (shape.stored_outputs == 0) return vector(shape.name + ".bias", shape.outputs, shape.bias, out);
  std::vector<float> all;
  vector(shape.name + ".bias", shape.stored_outputs, shape.bias, all);
  if (!all.empty()) out.clear();
  for (std::int64_t i = 0; !all.empty() && i < shape.outputs; ++i) out.push_back(all[static_cast<std::size_t>(shape.stored_row(i))]);
}

bool rotates(kernels::WeightType type) {
  const kernels::BlockForm* form = kernels::block_form(type);
  return form != nullptr && form->codes.summing == kernels::Summing::kBlock;
}

// Rows that a type's blocks do not divide keep their own type.
kernels::WeightType TensorReader::packed_type(const files::GgufTensor& tensor, const LinearShape& shape) const {
  using kernels::WeightType;
  if (shape.exact) return WeightType::kF32;
  const auto fits = [&](WeightType type) { return tensor.shape.front() % kernels::weight_format(type)->block_values == 0; };
  const auto stored = static_cast<WeightType>(tensor.type);
  const bool is_float = tensor.coded || stored == WeightType::kF32 || stored == WeightType::kF16 || stored == WeightType::kBF16;
  const WeightType type = is_float && float_type_ && fits(*float_type_) ? *float_type_ : stored;
  // What is rounded to fewer bits than 8 only now (--quantize) is not given more.
  const bool may_rotate = type == stored ? rotates(type) : type == WeightType::kQ8_0;
  const bool rotated = may_rotate && rotate_ && shape.rotation == Rotation::kAllowed && fits(WeightType::kRotated8);
  return rotated ? WeightType::kRotated8 : type;
}

// Rows that lie in another order, or at addresses that their type does not allow (as in some safetensors), are copied first.
void TensorReader::pack_panels(const Noted& noted, std::int64_t begin, std::int64_t end, std::byte* packed) const {
  const kernels::PackedMatrix& out = *noted.out;
  const files::GgufTensor& tensor = *noted.tensor;
  const auto stored_type = static_cast<kernels::WeightType>(tensor.type);
  const std::byte* stored = tensor.bytes.data();
  const bool aligned = reinterpret_cast<std::uintptr_t>(stored) % alignof(float) == 0;
  if (stored_type == out.type && noted.shape.run == 0 && has_stored_rows(tensor) && aligned) {
    const std::size_t stored_bytes = kernels::stored_row_bytes(*kernels::weight_format(stored_type), out.inputs);
    return table_.pack(out.type, stored + static_cast<std::size_t>(noted.skipped + noted.shape.first_output) * stored_bytes, out.outputs,
                       out.inputs, packed, begin, end);
  }
  const std::size_t row_bytes = kernels::stored_row_bytes(*kernels::weight_format(out.type), out.inputs);
  const std::int64_t first = begin * kernels::kPanel;
  const std::int64_t rows = std::min(out.outputs, end * kernels::kPanel) - first;
  std::vector<std::byte> encoded(static_cast<std::size_t>(rows) * row_bytes);
  for (std::int64_t row = 0; row < rows; ++row)
    encode_row(tensor, noted.skipped + noted.shape.stored_row(first + row), out.inputs, out.type,
               encoded.data() + static_cast<std::size_t>(row) * row_bytes);
  const std::size_t panel_bytes = table_.packed_bytes(out.type, kernels::kPanel, out.inputs);
  table_.pack(out.type, encoded.data(), rows, out.inputs, packed + static_cast<std::size_t>(begin) * panel_bytes, 0, end - begin);
}

void TensorReader::refuse_others(std::string_view architecture) {
  for (const files::GgufTensor& tensor : file_.tensors())
    if (!seen_.contains(tensor.name) && !is_zero_bias(tensor))
      fail(ErrorCode::kUnsupported, tensor.name, fmt::format("is not part of the {} architecture as this build computes it", architecture));
}

// Of one of many matrices in a tensor only its own pages, where they are known: the others are still to come.
void TensorReader::drop_pages(const Noted& noted, bool is_last) const {
  const files::GgufTensor& tensor = *noted.tensor;
  if (is_last) return file_.drop_pages(tensor);
  if (!has_stored_rows(tensor) || noted.shape.run > 0) return;
  const auto* format = kernels::weight_format(static_cast<kernels::WeightType>(tensor.type));
  const std::size_t row_bytes = kernels::stored_row_bytes(*format, noted.out->inputs);
  file_.drop_pages(tensor.bytes.subspan(static_cast<std::size_t>(noted.skipped + noted.shape.first_output) * row_bytes,
                                        static_cast<std::size_t>(noted.out->outputs) * row_bytes));
}

Result<files::Mapping> TensorReader::pack(kernels::ThreadTeam& team, const files::Progress& progress, files::HugePages pages) const {
  auto mapping = files::Mapping::reserve(packed_bytes_, "weights", pages);
  if (!mapping) return mapping.error();
  for (std::size_t i = 0; i < matrices_.size(); ++i) {
    const Noted& noted = matrices_[i];
    kernels::PackedMatrix& out = *noted.out;
    const auto [first, last] = noted.panels;
    // Where the first panel of all would be, which another rank has: kernels count from there.
    std::byte* packed = mapping->data() + noted.offset - bytes_of(out, {0, first});
    team.for_chunks(last - first, 8,
                    [&, from = first](std::int64_t begin, std::int64_t end, int) { pack_panels(noted, from + begin, from + end, packed); });
    out.data = packed;
    drop_pages(noted, i + 1 == matrices_.size() || matrices_[i + 1].tensor != noted.tensor);
    if (progress) progress("weights", noted.offset + bytes_of(out, noted.panels), packed_bytes_);
  }
  return mapping;
}

}  // namespace braid::model
