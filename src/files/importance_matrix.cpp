#include "files/importance_matrix.h"

#include "files/gguf.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fmt/format.h>
#include <optional>
#include <span>

namespace braid::files {
namespace {

constexpr std::string_view kSums = ".in_sum2";
constexpr std::uint32_t kF32 = 0;

Error damaged_matrix(const std::string& path, const std::string& what) {
  return {ErrorCode::kBadFile, fmt::format("{}: {}", path, what), {}};
}

std::vector<float> floats_of(std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

// "<matrix>.in_sum2" [inputs, experts] are sums over "<matrix>.counts" [1, experts] tokens. What was never seen counts alike.
Result<ImportanceMatrix> read_gguf_matrix(const std::string& path) {
  const auto file = GgufFile::open(path);
  if (!file) return file.error();
  ImportanceMatrix out;
  for (const GgufTensor& sums : file->tensors()) {
    if (!sums.name.ends_with(kSums)) continue;
    const std::string name = sums.name.substr(0, sums.name.size() - kSums.size());
    const GgufTensor* counts = file->tensor(name + ".counts");
    if (counts == nullptr || sums.type != kF32 || counts->type != kF32)
      return damaged_matrix(path, fmt::format("the sums of '{}' have no counts, or are no floats", name));
    std::vector<float> values = floats_of(sums.bytes);
    const std::vector<float> seen = floats_of(counts->bytes);
    if (seen.empty() || values.size() % seen.size() != 0)
      return damaged_matrix(path, fmt::format("'{}' has {} sums and {} counts", name, values.size(), seen.size()));
    const std::size_t inputs = values.size() / seen.size();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float count = seen[i / inputs];
      values[i] = count > 0.0F ? values[i] / count : 1.0F;
    }
    out.emplace(name, std::move(values));
  }
  if (out.empty()) return damaged_matrix(path, "is no importance matrix: it has no tensor that ends in '.in_sum2'");
  return out;
}

// Reads numbers and texts one after the other, as far as there are bytes.
class OldMatrixCursor {
 public:
  explicit OldMatrixCursor(std::span<const std::byte> rest) : rest_(rest) {}

  std::optional<std::span<const std::byte>> take(std::size_t bytes) {
    if (bytes > rest_.size()) return std::nullopt;
    const auto taken = rest_.first(bytes);
    rest_ = rest_.subspan(bytes);
    return taken;
  }
  std::optional<std::size_t> count() {
    const auto bytes = take(4);
    std::int32_t value = 0;
    if (bytes) std::memcpy(&value, bytes->data(), 4);
    return bytes && value >= 0 ? std::optional(static_cast<std::size_t>(value)) : std::nullopt;
  }

 private:
  std::span<const std::byte> rest_;
};

// Entries: length and bytes of the name, how often it was seen, how many sums, and these.
Result<ImportanceMatrix> read_old_matrix(const std::string& path, std::span<const std::byte> bytes) {
  OldMatrixCursor cursor(bytes);
  ImportanceMatrix out;
  const auto entries = cursor.count();
  for (std::size_t i = 0; entries && i < *entries; ++i) {
    const auto length = cursor.count();
    const auto name = length ? cursor.take(*length) : std::nullopt;
    const auto calls = cursor.count();
    const auto size = cursor.count();
    const auto sums = name && calls && size ? cursor.take(*size * sizeof(float)) : std::nullopt;
    if (!sums) return damaged_matrix(path, fmt::format("ends within entry {} of {}, or is no importance matrix", i + 1, *entries));
    std::vector<float> values = floats_of(*sums);
    if (*calls > 0) std::ranges::transform(values, values.begin(), [&](float sum) { return sum / static_cast<float>(*calls); });
    out.emplace(std::string(reinterpret_cast<const char*>(name->data()), name->size()), std::move(values));
  }
  if (out.empty()) return damaged_matrix(path, "is no importance matrix");
  return out;
}

}  // namespace

Result<ImportanceMatrix> read_importance_matrix(const std::string& path) {
  const auto source = map_file(path);
  if (!source) return source.error();
  const auto bytes = (*source)->bytes();
  const bool is_gguf = bytes.size() >= 4 && std::memcmp(bytes.data(), "GGUF", 4) == 0;
  auto matrix = is_gguf ? read_gguf_matrix(path) : read_old_matrix(path, bytes);
  if (!matrix) return matrix;
  for (const auto& [name, values] : *matrix)
    if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value) && value >= 0.0F; }))
      return damaged_matrix(path, fmt::format("the importance of '{}' is not all numbers of at least 0", name));
  return matrix;
}

}  // namespace braid::files
