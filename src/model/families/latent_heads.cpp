#include "model/families/latent_heads.h"

#include "kernels/encode.h"
#include "model/row_encoding.h"

#include <fmt/format.h>
#include <string>
#include <utility>

namespace braid::model {
namespace {

using kernels::WeightType;

// Columns of keys become rows, which a type of blocks cannot have without being rounded again.
WeightType type_of_keys(const files::GgufTensor& whole, std::int32_t plain) {
  const auto type = static_cast<WeightType>(whole.type);
  if (whole.coded) return WeightType::kF32;
  if (kernels::weight_format(type)->block_values == 1) return type;
  return plain % kernels::weight_format(WeightType::kQ8_0)->block_values == 0 ? WeightType::kQ8_0 : WeightType::kF32;
}

// [heads, rank, plain]
std::vector<std::byte> rows_of_keys(const files::GgufTensor& whole, const LatentHeads& heads, WeightType type) {
  const std::int64_t rank = whole.shape.front();
  const std::int64_t plain = heads.plain;
  const std::size_t row_bytes = kernels::stored_row_bytes(*kernels::weight_format(type), plain);
  std::vector<std::byte> bytes(row_bytes * static_cast<std::size_t>(rank * heads.count));
  std::vector<float> head(static_cast<std::size_t>(plain * rank));
  std::vector<float> column(static_cast<std::size_t>(plain));
  for (std::int64_t h = 0; h < heads.count; ++h) {
    for (std::int64_t i = 0; i < plain; ++i) read_row(whole, h * (plain + heads.value) + i, rank, head.data() + i * rank);
    for (std::int64_t r = 0; r < rank; ++r) {
      for (std::int64_t i = 0; i < plain; ++i) column[static_cast<std::size_t>(i)] = head[static_cast<std::size_t>(i * rank + r)];
      kernels::encode_row(type, column.data(), plain, bytes.data() + static_cast<std::size_t>(h * rank + r) * row_bytes);
    }
  }
  return bytes;
}

}  // namespace

Result<PartedHeads> part_heads(files::GgufTensor whole, const LatentHeads& heads) {
  const std::int64_t rows = std::int64_t{heads.count} * (heads.plain + heads.value);
  if (whole.shape.size() != 2 || whole.shape[1] != rows || !is_sound(whole))
    return Error{ErrorCode::kBadFile, fmt::format("the tensor {} is not [{}, rank]", whole.name, rows), {}};
  const std::string layer = whole.name.substr(0, whole.name.rfind(kLatentHeads));
  const WeightType type = type_of_keys(whole, heads.plain);
  PartedHeads parted;
  parted.keys.name = fmt::format("{}{}.weight", layer, kLatentKeys);
  parted.keys.type = static_cast<std::uint32_t>(type);
  parted.keys.shape = {heads.plain, whole.shape.front(), heads.count};
  if (!whole.coded || whole.coded->has_values()) parted.key_bytes = rows_of_keys(whole, heads, type);
  whole.name = fmt::format("{}{}.weight", layer, kLatentValues);
  whole.shape = {whole.shape.front(), heads.value, heads.count};
  for (std::int32_t h = 0; h < heads.count; ++h)
    for (std::int32_t i = 0; i < heads.value; ++i) whole.order.push_back(h * (heads.plain + heads.value) + heads.plain + i);
  parted.values = std::move(whole);
  return parted;
}

}  // namespace braid::model
