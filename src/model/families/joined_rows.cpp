#include "model/families/joined_rows.h"

#include "model/row_encoding.h"

#include <utility>

namespace braid::model {

JoinedRows::JoinedRows(std::vector<files::GgufTensor> parts)
    : parts_(std::move(parts)), rows_each_(rows_of(parts_.front())), columns_(parts_.front().shape.front()) {}

void JoinedRows::read(std::int64_t row, float* out) const { read_row(part_of(row), row % rows_each_, columns_, out); }

void JoinedRows::encode(std::int64_t row, std::byte* out) const {
  const files::GgufTensor& part = part_of(row);
  encode_row(part, row % rows_each_, columns_, static_cast<kernels::WeightType>(part.type), out);
}

std::vector<std::span<const std::byte>> JoinedRows::other_bytes() const {
  std::vector<std::span<const std::byte>> all;
  for (const files::GgufTensor& part : parts_) {
    all.push_back(part.bytes);
    if (!part.coded) continue;
    for (const auto other : part.coded->other_bytes()) all.push_back(other);
  }
  return all;
}

}  // namespace braid::model
