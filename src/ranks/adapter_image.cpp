#include "ranks/adapter_image.h"

#include "files/mapping.h"
#include "ranks/serial.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

namespace braid::ranks {
namespace {

// AdaptedMatrix with places in the adapter's storage instead of pointers, and how many there are of its lists.
struct MatrixImage {
  std::int64_t inputs = 0, down_stride = 0, up_columns = 0;
  std::uint64_t down = 0, up = 0;
  std::uint64_t magnitudes = 0, biases = 0;
  std::int64_t own_outputs = 0, own_inputs = 0;  // of a matrix in the base's place; 0: none
  std::uint64_t own_data = 0;
  std::int32_t rank = 0;
  float scale = 1.0F;
  std::uint16_t half = 0;
  std::uint16_t is_table = 0;  // whether tokens' rows are an embedding's
  std::uint32_t own_type = 0;
  std::uint32_t own_number = 0;
  std::uint32_t tokens = 0;
  std::uint64_t rows = 0;  // values of theirs
};

struct NormImage {
  std::uint64_t weights = 0, biases = 0;
};

struct AdapterImage {
  std::uint64_t number = 0;
  std::int64_t widest = 0;
  std::vector<std::int32_t> place = {};
  std::vector<MatrixImage> matrices = {};
  std::vector<std::int32_t> norm_place = {};
  std::vector<NormImage> norms = {};
  std::vector<float> values = {};  // magnitudes, biases and tokens' rows of all, then those of norms
  std::vector<std::int32_t> tokens = {};
  std::uint64_t bytes = 0;  // of the storage, which follows

  void each(auto& use) {
    use(number), use(widest), use(place), use(matrices), use(norm_place), use(norms), use(values), use(tokens), use(bytes);
  }
};

MatrixImage image_of(const model::AdaptedMatrix& matrix, const std::byte* storage) {
  const model::LowRankFactors& factors = matrix.low_rank;
  const auto place = [storage](const std::byte* data) { return data == nullptr ? 0 : static_cast<std::uint64_t>(data - storage); };
  return {.inputs = factors.inputs,
          .down_stride = factors.down_stride,
          .up_columns = factors.up_columns,
          .down = place(factors.down),
          .up = place(factors.up),
          .magnitudes = matrix.magnitude.size(),
          .biases = matrix.bias.size(),
          .own_outputs = matrix.replacement.outputs,
          .own_inputs = matrix.replacement.inputs,
          .own_data = place(matrix.replacement.data),
          .rank = factors.rank,
          .scale = factors.scale,
          .half = static_cast<std::uint16_t>(factors.half),
          .is_table = static_cast<std::uint16_t>(matrix.is_table),
          .own_type = static_cast<std::uint32_t>(matrix.replacement.type),
          .own_number = matrix.replacement.number,
          .tokens = static_cast<std::uint32_t>(matrix.tokens.size()),
          .rows = matrix.rows.size()};
}

// Builds an adapter of its image, and looks that nothing points out of it.
class AdapterReader {
 public:
  AdapterReader(const AdapterImage& image, std::span<const std::byte> storage, const ImageBase& base)
      : image_(image), bytes_(storage.size()), base_(base), values_(image.values), tokens_(image.tokens) {}

  Result<std::shared_ptr<const model::Adapter>> build(std::span<const std::byte> storage) {
    auto mapping = files::Mapping::reserve(std::max<std::size_t>(1, bytes_), "an adapter");
    if (!mapping) return mapping.error();
    std::memcpy(mapping->data(), storage.data(), bytes_);
    auto adapter = std::make_shared<model::Adapter>();
    adapter->storage = std::move(*mapping);
    adapter->place = image_.place;
    adapter->norm_place = image_.norm_place;
    adapter->widest = image_.widest;
    for (const MatrixImage& one : image_.matrices) {
      model::AdaptedMatrix& matrix = adapter->matrices.emplace_back();
      read(one, adapter->storage.data(), matrix);
      adapter->rank = std::max(adapter->rank, matrix.low_rank.rank);
      is_sound_ = is_sound_ && matrix.low_rank.down_stride <= image_.widest;
    }
    for (const NormImage& one : image_.norms) {
      model::NormWeights& norm = adapter->norms.emplace_back();
      norm.weight = take(one.weights);
      norm.bias = take(one.biases);
    }
    const auto are_places = [](const std::vector<std::int32_t>& places, std::size_t count) {
      return std::ranges::all_of(places, [count](std::int32_t at) { return at >= -1 && at < static_cast<std::int32_t>(count); });
    };
    is_sound_ = is_sound_ && values_.empty() && tokens_.empty() && are_places(image_.place, image_.matrices.size()) &&
                are_places(image_.norm_place, image_.norms.size());
    if (!is_sound_) return Error{ErrorCode::kInternal, "an adapter came in a form that is not understood", {}};
    return std::shared_ptr<const model::Adapter>(std::move(adapter));
  }

 private:
  void read(const MatrixImage& one, const std::byte* storage, model::AdaptedMatrix& matrix) {
    matrix.magnitude = take(one.magnitudes);
    matrix.bias = take(one.biases);
    matrix.rows = take(one.rows);
    matrix.is_table = one.is_table != 0;
    take_tokens(one.tokens, matrix);
    if (one.rank != 0) {
      model::LowRankFactors& factors = matrix.low_rank;
      factors = {.rank = one.rank,
                 .inputs = one.inputs,
                 .scale = one.scale,
                 .half = one.half != 0,
                 .down_stride = one.down_stride,
                 .up_columns = one.up_columns,
                 .down = storage + one.down,
                 .up = storage + one.up};
      is_sound_ = is_sound_ && one.rank > 0 && one.rank <= model::LowRankFactors::kMostRank && one.down_stride >= one.rank &&
                  holds(one.down, one.inputs, one.down_stride, factors.value_bytes()) &&
                  holds(one.up, one.rank, one.up_columns, factors.value_bytes());
    }
    if (one.own_inputs == 0) return;
    const auto type = static_cast<kernels::WeightType>(one.own_type);
    is_sound_ = is_sound_ && one.own_inputs > 0 && one.own_outputs > 0 &&
                holds(one.own_data, 1, static_cast<std::int64_t>(base_.table.packed_bytes(type, one.own_outputs, one.own_inputs)), 1);
    matrix.replacement = {
        .type = type, .outputs = one.own_outputs, .inputs = one.own_inputs, .data = storage + one.own_data, .number = one.own_number};
  }

  // In ascending order; of a head's rows there is a place for what each gives.
  void take_tokens(std::uint32_t count, model::AdaptedMatrix& matrix) {
    is_sound_ = is_sound_ && count <= tokens_.size() && (count == 0) == matrix.rows.empty();
    if (!is_sound_ || count == 0) return;
    matrix.tokens.assign(tokens_.begin(), tokens_.begin() + count);
    tokens_ = tokens_.subspan(count);
    const std::int64_t each = matrix.is_table ? count : kernels::whole_column_groups(count);
    is_sound_ = matrix.tokens.front() >= 0 &&
                std::ranges::adjacent_find(matrix.tokens, std::ranges::greater_equal()) == matrix.tokens.end() &&
                (matrix.is_table || each <= image_.widest) && std::cmp_equal(matrix.rows.size(), each * base_.embedding);
  }

  std::vector<float> take(std::uint64_t count) {
    is_sound_ = is_sound_ && count <= values_.size();
    if (!is_sound_) return {};
    const std::span<const float> taken = values_.first(count);
    values_ = values_.subspan(count);
    return {taken.begin(), taken.end()};
  }

  bool holds(std::uint64_t begin, std::int64_t rows, std::int64_t stride, std::size_t value_bytes) const {
    if (begin > bytes_ || rows < 0 || stride < 0) return false;
    const std::uint64_t left = (bytes_ - begin) / value_bytes;
    return rows == 0 || static_cast<std::uint64_t>(stride) <= left / static_cast<std::uint64_t>(rows);
  }

  const AdapterImage& image_;
  const std::size_t bytes_;
  const ImageBase& base_;
  std::span<const float> values_;  // that nobody has taken yet, and likewise
  std::span<const std::int32_t> tokens_;
  bool is_sound_ = true;
};

}  // namespace

void write_adapter(std::uint64_t number, const model::Adapter& adapter, Bytes& out) {
  AdapterImage image{.number = number,
                     .widest = adapter.widest,
                     .place = adapter.place,
                     .norm_place = adapter.norm_place,
                     .bytes = adapter.storage.size()};
  for (const model::AdaptedMatrix& matrix : adapter.matrices) {
    image.matrices.push_back(image_of(matrix, adapter.storage.data()));
    image.values.insert(image.values.end(), matrix.magnitude.begin(), matrix.magnitude.end());
    image.values.insert(image.values.end(), matrix.bias.begin(), matrix.bias.end());
    image.values.insert(image.values.end(), matrix.rows.begin(), matrix.rows.end());
    image.tokens.insert(image.tokens.end(), matrix.tokens.begin(), matrix.tokens.end());
  }
  for (const model::NormWeights& norm : adapter.norms) {
    image.norms.push_back({.weights = norm.weight.size(), .biases = norm.bias.size()});
    image.values.insert(image.values.end(), norm.weight.begin(), norm.weight.end());
    image.values.insert(image.values.end(), norm.bias.begin(), norm.bias.end());
  }
  Writer writer(out);
  image.each(writer);
  out.insert(out.end(), adapter.storage.data(), adapter.storage.data() + adapter.storage.size());
}

Result<ReceivedAdapter> read_adapter(std::span<const std::byte> bytes, const ImageBase& base) {
  AdapterImage image;
  Reader reader(bytes);
  image.each(reader);
  const std::span<const std::byte> storage = reader.rest();
  if (!reader.is_sound() || storage.size() != image.bytes || image.place.size() != std::size_t{base.matrices} + 1)
    return Error{ErrorCode::kInternal, "an adapter came in a form that is not understood", {}};
  auto adapter = AdapterReader(image, storage, base).build(storage);
  if (!adapter) return adapter.error();
  return ReceivedAdapter{image.number, std::move(*adapter)};
}

}  // namespace braid::ranks
