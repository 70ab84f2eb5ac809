#include "model/prequantized/matrix_builder.h"

#include "model/families/gguf_keys.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

namespace braid::model {

void MatrixBuilder::fail(std::string_view what) {
  config_.fail(ErrorCode::kBadFile, fmt::format("the quantised matrix {}: {}", stem_, what));
}

const files::SafeTensor* MatrixBuilder::find(std::string_view suffix) {
  const auto found = folder_.tensors().find(fmt::format("{}.{}", stem_, suffix));
  if (found == folder_.tensors().end()) return nullptr;
  out_.used.insert(found->first);
  return &found->second;
}

const files::SafeTensor* MatrixBuilder::take(std::string_view suffix, std::initializer_list<std::string_view> dtypes) {
  const files::SafeTensor* stored = find(suffix);
  if (stored == nullptr) {
    fail(fmt::format("'{}' is missing", suffix));
  } else if (std::ranges::find(dtypes, stored->dtype) == dtypes.end()) {
    fail(fmt::format("'{}' has the type {}, expected {}", suffix, stored->dtype, fmt::join(dtypes, " or ")));
    return nullptr;
  } else if (std::ranges::any_of(stored->shape,
                                 [](std::int64_t extent) { return extent < 1 || extent > std::int64_t{kMaxDimension} * 32; })) {
    fail(fmt::format("'{}' has the shape [{}]", suffix, fmt::join(stored->shape, ", ")));
    return nullptr;
  }
  return stored;
}

bool MatrixBuilder::has_shape(const files::SafeTensor& stored, std::initializer_list<std::int64_t> shape) {
  if (std::ranges::equal(stored.shape, shape)) return true;
  fail(fmt::format("found a part of shape [{}], expected [{}]", fmt::join(stored.shape, ", "), fmt::join(shape, ", ")));
  return false;
}

void MatrixBuilder::byte_codes(const files::SafeTensor& stored) {
  if (stored.shape.size() != 2) return fail("its codes are no matrix");
  parts.rows = stored.shape[0];
  parts.columns = stored.shape[1];
  parts.codes = bytes(stored);
}

void MatrixBuilder::word_codes(const files::SafeTensor& stored, int bits) {
  if (stored.shape.size() != 2) return fail("its codes are no matrix");
  const std::int64_t row_bits = stored.shape[1] * (stored.dtype == "U8" ? 8 : 32);
  if (row_bits % 32 != 0 || row_bits % bits != 0)
    return fail(fmt::format("rows of {} bits hold no whole number of codes of {}", row_bits, bits));
  parts.rows = stored.shape[0];
  parts.columns = row_bits / bits;
  parts.codes = {.bytes = stored.bytes, .bits = bits, .other_stride = row_bits / 8};
}

PackedCodes MatrixBuilder::bytes(const files::SafeTensor& stored) {
  return {.bytes = stored.bytes, .bits = 8, .other_stride = stored.shape.back()};
}

PackedCodes MatrixBuilder::packed(const files::SafeTensor& stored, int bits, Stream stream, std::int64_t rows, std::int64_t columns,
                                  bool rows_first) {
  const bool along_columns = stream == Stream::kAlongColumns;
  const std::int64_t words = ((along_columns ? columns : rows) * bits + 31) / 32;
  const std::int64_t first = rows_first ? (along_columns ? rows : words) : (along_columns ? words : columns);
  const std::int64_t second = rows_first ? (along_columns ? words : columns) : (along_columns ? rows : words);
  if (!has_shape(stored, {first, second})) return {};
  const bool stream_is_last = rows_first == along_columns;
  return {.bytes = stored.bytes,
          .bits = bits,
          .along_columns = along_columns,
          .word_stride = 4 * (stream_is_last ? 1 : second),
          .other_stride = 4 * (stream_is_last ? second : 1)};
}

void MatrixBuilder::byte_zeros(const files::SafeTensor& stored, std::int64_t groups, int plus) {
  if (stored.dtype != "I8") return fail(fmt::format("its zeros have the type {}, expected I8", stored.dtype));
  if (stored.bytes.size() == 1) {
    parts.zero = std::to_integer<signed char>(stored.bytes[0]) + plus;
    return;
  }
  if (!has_shape(stored, {parts.rows, groups})) return;
  parts.zeros = bytes(stored);
  parts.zeros_are_signed = true;
  parts.zeros_plus = plus;
}

std::optional<GroupFloats> MatrixBuilder::typed(const files::SafeTensor& stored) {
  using Type = GroupFloats::Type;
  constexpr std::pair<std::string_view, Type> kScaleTypes[] = {
      {"F32", Type::kF32}, {"F16", Type::kF16}, {"BF16", Type::kBF16}, {"F8_E4M3", Type::kE4M3}, {"F8_E8M0", Type::kE8M0}};
  if (stored.dtype == "U8" && byte_scales) return GroupFloats{.bytes = stored.bytes, .type = *byte_scales};
  const auto* found = std::ranges::find(kScaleTypes, stored.dtype, &std::pair<std::string_view, Type>::first);
  if (found != std::end(kScaleTypes)) return GroupFloats{.bytes = stored.bytes, .type = found->second};
  fail(fmt::format("its scales have the type {}", stored.dtype));
  return std::nullopt;
}

GroupFloats MatrixBuilder::floats(const files::SafeTensor& stored) {
  auto out = typed(stored);
  if (!out) return {};
  std::int64_t values = 1;
  for (const std::int64_t extent : stored.shape) values *= extent;
  if (values == 1) {
    parts.group = parts.group == 0 ? parts.columns : parts.group;
    return *out;
  }
  const std::int64_t groups = stored.shape.size() == 2 ? stored.shape[1] : 1;
  if (stored.shape.empty() || stored.shape.size() > 2 || stored.shape[0] != parts.rows)
    return fail(fmt::format("its scales have the shape [{}], expected {} rows", fmt::join(stored.shape, ", "), parts.rows)), GroupFloats();
  if (parts.group == 0 && groups > 0 && parts.columns % groups == 0) parts.group = parts.columns / groups;
  if (parts.group == 0 || (parts.columns + parts.group - 1) / parts.group != groups)
    return fail(fmt::format("there are {} scales for {} inputs", groups, parts.columns)), GroupFloats();
  out->row_stride = groups;
  out->group_stride = 1;
  return *out;
}

GroupFloats MatrixBuilder::transposed_floats(const files::SafeTensor& stored) {
  auto out = typed(stored);
  if (!out || parts.group == 0 || !has_shape(stored, {(parts.columns + parts.group - 1) / parts.group, parts.rows})) return {};
  out->row_stride = 1;
  out->group_stride = parts.rows;
  return *out;
}

GroupFloats MatrixBuilder::block_floats(const files::SafeTensor& stored, std::int64_t height, std::int64_t width) {
  auto out = typed(stored);
  const std::int64_t across = (parts.columns + width - 1) / width;
  if (!out || !has_shape(stored, {(parts.rows + height - 1) / height, across})) return {};
  parts.group = width;
  out->rows_each = height;
  out->row_stride = across;
  out->group_stride = 1;
  return *out;
}

void MatrixBuilder::group_indices(const files::SafeTensor& stored) {
  if (!has_shape(stored, {parts.columns})) return;
  std::vector<std::int32_t> indices(static_cast<std::size_t>(parts.columns));
  if (stored.bytes.size() != indices.size() * 4) return fail("g_idx is not of 32 bits");
  std::memcpy(indices.data(), stored.bytes.data(), stored.bytes.size());
  const std::int64_t groups = (parts.columns + parts.group - 1) / parts.group;
  bool in_order = true;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] < 0 || indices[i] >= groups) return fail(fmt::format("g_idx names the group {} of {}", indices[i], groups));
    in_order = in_order && indices[i] == static_cast<std::int64_t>(i) / parts.group;
  }
  if (!in_order) parts.group_of = std::move(indices);
}

void MatrixBuilder::finish() {
  if (failed()) return;
  if (parts.rows > std::int64_t{kMaxDimension} * 16 || parts.columns > std::int64_t{kMaxDimension})
    return fail("is larger than any model's");
  out_.matrices.emplace(stem_ + ".weight", std::make_shared<CodedMatrix>(std::move(parts)));
}

}  // namespace braid::model
