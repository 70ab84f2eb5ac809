// A matrix of integer or small float codes with scales for groups of inputs: value = number(code) * scale + bias.
#pragma once

#include "braid/result.h"
#include "files/coded_rows.h"
#include "files/safetensors.h"
#include "kernels/weight_type.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace braid::model {

// Codes of up to 8 bits as a stream of 32-bit words, lowest bits first, that runs along one dimension.
struct PackedCodes {
  std::span<const std::byte> bytes;
  int bits = 8;
  bool along_columns = true;      // the dimension of the stream
  std::int64_t word_stride = 4;   // bytes from a word of the stream to the next
  std::int64_t other_stride = 0;  // bytes from a place of the other dimension to the next
  bool shuffled = false;          // AWQ: of 8 codes in a word the order is 0, 2, 4, 6, 1, 3, 5, 7

  unsigned at(std::int64_t row, std::int64_t column) const;
};

// [rows, groups] floats of any type, or fewer where several share one.
struct GroupFloats {
  std::span<const std::byte> bytes;
  enum class Type { kF32, kF16, kBF16, kE4M3, kE8M0 } type = Type::kF32;
  std::int64_t rows_each = 1;  // rows that share a value
  std::int64_t row_stride = 0;
  std::int64_t group_stride = 0;
  float factor = 1.0F;

  float at(std::int64_t row, std::int64_t group) const;
};

enum class Numbers { kIntegers, kE2M1, kE4M3 };

// Checked by whoever fills it in: no place of any of them lies outside its bytes.
struct CodedParts {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t group = 0;  // inputs that share a scale
  PackedCodes codes;
  Numbers numbers = Numbers::kIntegers;
  bool is_signed = false;            // codes are in two's complement
  int zero = 0;                      // the code that means 0, where `zeros` does not say it
  std::optional<PackedCodes> zeros;  // of [rows, groups]
  bool zeros_are_signed = false;
  int zeros_plus = 0;  // what is to be added to a stored one
  GroupFloats scales;
  std::optional<GroupFloats> biases;
  std::vector<std::int32_t> group_of;  // [columns], or empty: inputs lie in order
};

class CodedMatrix : public files::CodedRows {
 public:
  explicit CodedMatrix(CodedParts parts);

  std::int64_t rows() const override { return parts_.rows; }
  void read(std::int64_t row, float* out) const override;
  void encode(std::int64_t row, std::byte* out) const override;
  std::vector<std::span<const std::byte>> other_bytes() const override;

  std::int64_t columns() const { return parts_.columns; }
  bool orders_inputs() const { return !parts_.group_of.empty(); }  // so that those of a scale do not lie side by side
  std::span<const std::byte> code_bytes() const { return parts_.codes.bytes; }
  // What encode() writes: the smallest type that has every value exactly; failing that, 8 bits or bf16.
  kernels::WeightType type() const { return type_; }
  // How far encoded values are from what the codes mean, as a share of their size (root mean squares of some rows); 0: not at all.
  double error() const;

 private:
  int number(std::int64_t row, std::int64_t column, int zero) const;
  int zero_of(std::int64_t row, std::int64_t group) const;
  std::int64_t groups() const { return (parts_.columns + parts_.group - 1) / parts_.group; }
  std::pair<int, int> range() const;
  // Sets type_ and kept_.
  void choose_type();
  void encode_blocks(std::int64_t row, std::byte* out) const;

  CodedParts parts_;
  kernels::WeightType type_ = kernels::WeightType::kF16;
  bool kept_ = false;  // codes and scales are those of blocks of that type
};

}  // namespace braid::model
