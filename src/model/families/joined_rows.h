// Matrices that a file holds in one tensor and a folder in several.
#pragma once

#include "files/coded_rows.h"
#include "files/gguf.h"

#include <cstdint>
#include <span>
#include <vector>

namespace braid::model {

// Immutable. All parts have one type and one shape [columns, rows]; their bytes belong to the folder.
class JoinedRows : public files::CodedRows {
 public:
  explicit JoinedRows(std::vector<files::GgufTensor> parts);

  std::int64_t rows() const override { return rows_each_ * static_cast<std::int64_t>(parts_.size()); }
  void read(std::int64_t row, float* out) const override;
  void encode(std::int64_t row, std::byte* out) const override;
  std::vector<std::span<const std::byte>> other_bytes() const override;

  const std::vector<files::GgufTensor>& parts() const { return parts_; }

 private:
  const files::GgufTensor& part_of(std::int64_t row) const { return parts_[static_cast<std::size_t>(row / rows_each_)]; }

  const std::vector<files::GgufTensor> parts_;
  const std::int64_t rows_each_;
  const std::int64_t columns_;
};

}  // namespace braid::model
