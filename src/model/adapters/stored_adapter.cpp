#include "model/adapters/stored_adapter.h"

#include "model/stored_values.h"

#define XXH_INLINE_ALL  // NOLINT: as xxhash.h wants it
#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <utility>
#include <xxhash.h>

namespace braid::model {
namespace {

class Hash {
 public:
  Hash() : state_(XXH3_createState(), XXH3_freeState) { XXH3_128bits_reset(state_.get()); }

  void take(const void* bytes, std::size_t count) { XXH3_128bits_update(state_.get(), bytes, count); }
  void take(std::uint64_t number) { take(&number, sizeof number); }
  void take(const std::string& text) {
    take(text.size());
    take(text.data(), text.size());
  }
  void take(const StoredTensor& tensor) {
    take(tensor.shape.size());
    if (tensor.empty()) return;
    take(static_cast<std::uint64_t>(tensor.type));
    for (const std::int64_t size : tensor.shape) take(static_cast<std::uint64_t>(size));
    take(tensor.bytes.data(), tensor.bytes.size());
  }

  std::string digits() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
    return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
  }

 private:
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state_;
};

}  // namespace

void StoredTensor::read_row(std::int64_t row, float* out) const {
  const std::size_t bytes_each = kernels::stored_row_bytes(*kernels::weight_format(type), columns());
  kernels::dequantize_row(type, bytes.data() + static_cast<std::size_t>(row) * bytes_each, columns(), out);
}

bool StoredTensor::is_finite() const { return are_finite(type, bytes); }

const std::string& StoredMatrix::said_by() const {
  for (const StoredTensor* tensor : {&down, &up, &replacement, &rows, &bias, &magnitude})
    if (!tensor->empty()) return tensor->name;
  return up_bias.name;
}

std::string StoredAdapter::revision() const {
  Hash hash;
  hash.take(matrices.size());
  for (const StoredMatrix& matrix : matrices) {
    hash.take(matrix.name);
    hash.take(static_cast<std::uint64_t>(matrix.expert + 1));
    hash.take(&matrix.scale, sizeof matrix.scale);
    hash.take(matrix.turned ? 1U : 0U);
    for (const StoredTensor* tensor : {&matrix.down, &matrix.up, &matrix.up_bias, &matrix.magnitude, &matrix.bias, &matrix.replacement})
      hash.take(*tensor);
    if (matrix.rows.empty()) continue;
    hash.take(matrix.rows);
    hash.take(matrix.tokens.data(), matrix.tokens.size() * sizeof(std::int32_t));
  }
  return hash.digits();
}

}  // namespace braid::model
