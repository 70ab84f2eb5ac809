#include "model/adapters/whole_weights.h"

#include "files/gguf.h"
#include "kernels/encode.h"
#include "model/row_encoding.h"

#include <numeric>
#include <utility>

namespace braid::model {
namespace {

files::GgufTensor as_file(const StoredMatrix& stored, const StoredTensor& tensor, float plus) {
  files::GgufTensor file;
  file.name = tensor.name;
  file.type = static_cast<std::uint32_t>(tensor.type);
  file.shape.assign(tensor.shape.rbegin(), tensor.shape.rend());
  file.bytes = tensor.bytes;
  file.order = stored.order;
  if (!file.order.empty()) file.shape.back() = static_cast<std::int64_t>(file.order.size());
  file.columns = stored.columns;
  file.factors = stored.factors;
  file.plus = plus;
  return file;
}

// Of a module whose rows are the matrix's columns: an output is one of its columns.
class Columns {
 public:
  Columns(const StoredMatrix& stored, const LinearShape& shape) : inputs_(shape.inputs), columns_(stored.replacement.columns()) {
    values_.resize(static_cast<std::size_t>(inputs_ * columns_));
    for (std::int64_t input = 0; input < inputs_; ++input) {
      const std::int64_t row = stored.across && !stored.order.empty() ? stored.order[static_cast<std::size_t>(input)] : input;
      stored.replacement.read_row(row, values_.data() + input * columns_);
    }
  }

  void read(std::int64_t column, std::vector<float>& out) const {
    for (std::int64_t input = 0; input < inputs_; ++input)
      out[static_cast<std::size_t>(input)] = values_[static_cast<std::size_t>(input * columns_ + column)];
  }

 private:
  const std::int64_t inputs_, columns_;
  std::vector<float> values_;
};

}  // namespace

std::vector<std::byte> whole_rows(const StoredMatrix& stored, const LinearShape& shape) {
  const kernels::WeightType type = stored.replacement.type;
  const std::size_t row_bytes = kernels::stored_row_bytes(*kernels::weight_format(type), shape.inputs);
  std::vector<std::byte> rows(static_cast<std::size_t>(shape.outputs) * row_bytes);
  if (stored.across || stored.lies_turned) {
    const Columns columns(stored, shape);
    std::vector<float> row(static_cast<std::size_t>(shape.inputs));
    for (std::int64_t output = 0; output < shape.outputs; ++output) {
      columns.read(stored.across ? output : shape.stored_row(output), row);
      kernels::encode_row(type, row.data(), shape.inputs, rows.data() + static_cast<std::size_t>(output) * row_bytes);
    }
    return rows;
  }
  const files::GgufTensor file = as_file(stored, stored.replacement, 0.0F);
  for (std::int64_t output = 0; output < shape.outputs; ++output)
    encode_row(file, shape.stored_row(output), shape.inputs, type, rows.data() + static_cast<std::size_t>(output) * row_bytes);
  return rows;
}

std::optional<std::vector<float>> whole_values(const StoredMatrix& stored, const StoredTensor& tensor, float plus, std::int64_t count) {
  const files::GgufTensor file = as_file(stored, tensor, plus);
  const std::int64_t all = std::accumulate(file.shape.begin(), file.shape.end(), std::int64_t{1}, std::multiplies<>());
  if (all != count || !is_sound(file)) return std::nullopt;
  std::vector<float> values(static_cast<std::size_t>(count));
  const std::int64_t columns = file.shape.front();
  for (std::int64_t row = 0; row < rows_of(file); ++row) read_row(file, row, columns, values.data() + row * columns);
  return values;
}

}  // namespace braid::model
