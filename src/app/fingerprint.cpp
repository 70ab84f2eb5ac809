#include "app/fingerprint.h"

#include "app/version.h"
#include "cache/prefix_index.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <optional>
#include <span>
#include <type_traits>
#include <variant>

namespace braid::app {
namespace {

constexpr std::size_t kTensorEnd = std::size_t{256} << 10;  // bytes of a tensor that count, at either end

std::uint64_t digest_of(std::span<const std::byte> bytes) { return cache::xxh3_key(bytes).low; }
std::uint64_t digest_of(std::string_view text) { return digest_of(std::as_bytes(std::span(text))); }

// Collects what is to be told apart as text.
struct Summary {
  std::string text;

  void operator()(const std::string& value) { text += fmt::format("{}:{};", value.size(), value); }
  void operator()(const files::GgufArray& array) {
    std::visit(
        [this](const auto& items) {
      text += fmt::format("[{}]", items.size());
      for (const auto& item : items) (*this)(static_cast<typename std::decay_t<decltype(items)>::value_type>(item));
        },
        array.items);
  }
  template <class Number>
  requires std::is_arithmetic_v<Number>
  void operator()(Number value) { text += fmt::format("{};", value); }
};

std::string build_digest() {
  constexpr const char* kProgram = "/proc/self/exe";
  std::string bytes(std::filesystem::file_size(kProgram), '\0');
  std::ifstream(kProgram, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return fmt::format("{:08x}", digest_of(bytes) >> 32U);
}

}  // namespace

std::string model_digest(const files::GgufFile& file, const model::LoadOptions& options) {
  Summary summary;
  for (const auto& [key, value] : file.metadata()) {
    summary(key);
    std::visit(summary, value);
  }
  for (const files::GgufTensor& tensor : file.tensors()) {
    summary(tensor.name);
    summary(tensor.type);
    for (const std::int64_t size : tensor.shape) summary(size);
    const std::size_t end = std::min(kTensorEnd, tensor.bytes.size());
    summary(digest_of(tensor.bytes.first(end)));
    summary(digest_of(tensor.bytes.last(end)));
  }
  const std::optional<kernels::WeightType> float_type = options.packing.float_type;
  summary(float_type ? static_cast<std::int64_t>(*float_type) : -1);
  summary(options.packing.rotated_from);
  summary(options.kv_limit);
  return fmt::format("{:016x}", digest_of(summary.text));
}

std::string fingerprint(std::string_view tier, kernels::KvType kv_type, std::string_view model_digest) {
  return fmt::format("braid-{}+{}-{}-{}-{}", kVersion, build_digest(), tier, kernels::kv_type_name(kv_type), model_digest);
}

}  // namespace braid::app
