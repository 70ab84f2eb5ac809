// Finds the tensors that make one quantised matrix, and checks what each holds.
#pragma once

#include "files/hf_folder.h"
#include "model/families/folder_config.h"
#include "model/prequantized/coded_matrix.h"
#include "model/prequantized/prequantized.h"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace braid::model {

// One matrix at a time: its parts are filled in one after the other. The first failure is kept in the configuration's error, and later
// calls do no harm.
class MatrixBuilder {
 public:
  // `stem`: "model.layers.0.mlp.up_proj".
  MatrixBuilder(const files::HfFolder& folder, FolderConfig& config, Prequantized& out, std::string stem)
      : folder_(folder), config_(config), out_(out), stem_(std::move(stem)) {}

  CodedParts parts;
  std::optional<GroupFloats::Type> byte_scales;  // what scales are that are stored as plain bytes

  // The tensor "<stem>.<suffix>", noted as used. Null where it is missing or not of these types; take() then fails, find() does not.
  const files::SafeTensor* take(std::string_view suffix, std::initializer_list<std::string_view> dtypes);
  const files::SafeTensor* find(std::string_view suffix);
  void fail(std::string_view what);
  bool failed() const { return config_.error.has_value(); }

  // [rows, columns] codes of 8 bits.
  void byte_codes(const files::SafeTensor& stored);
  static PackedCodes bytes(const files::SafeTensor& stored);  // of [rows, groups]
  // Words along the inputs of [rows, words], or as many bytes.
  void word_codes(const files::SafeTensor& stored, int bits);
  // As many places as rows (or columns) and groups take, [rows, groups] or the other way round; the stream may run along either.
  enum class Stream { kAlongRows, kAlongColumns };
  PackedCodes packed(const files::SafeTensor& stored, int bits, Stream stream, std::int64_t rows, std::int64_t columns, bool rows_first);
  // Zeros in two's complement, [rows, groups] bytes or one, to which `plus` is added.
  void byte_zeros(const files::SafeTensor& stored, std::int64_t groups, int plus);
  // [rows, groups], [rows, 1], [rows] or one value; sets the group's size where it is not known yet.
  GroupFloats floats(const files::SafeTensor& stored);
  // [groups, rows]
  GroupFloats transposed_floats(const files::SafeTensor& stored);
  // [rows / height, columns / width], rounded up.
  GroupFloats block_floats(const files::SafeTensor& stored, std::int64_t height, std::int64_t width);
  // Which group each input belongs to, where they do not lie in order.
  void group_indices(const files::SafeTensor& stored);

  void finish();

 private:
  std::optional<GroupFloats> typed(const files::SafeTensor& stored);
  bool has_shape(const files::SafeTensor& stored, std::initializer_list<std::int64_t> shape);

  const files::HfFolder& folder_;
  FolderConfig& config_;
  Prequantized& out_;
  const std::string stem_;
};

}  // namespace braid::model
