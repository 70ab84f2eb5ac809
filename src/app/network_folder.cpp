#include "app/network_folder.h"

#include "app/whole_file.h"
#include "braid/tensor.h"
#include "cache/prefix_index.h"
#include "files/hf_folder.h"
#include "files/safetensors.h"

#include <cstddef>
#include <fmt/format.h>
#include <optional>
#include <span>
#include <utility>

namespace braid::app {
namespace {

constexpr std::size_t kMostConfig = std::size_t{16} << 20U;

std::int64_t count_values(const files::SafeTensors& file) {
  std::int64_t values = 0;
  for (const auto& [name, tensor] : file.tensors) values += value_count(tensor.shape);
  return values;
}

}  // namespace

std::string digest_of(const files::HfFolder& folder) {
  std::string text = folder.config();
  for (const auto& source : folder.sources()) {
    const cache::PrefixKey key = cache::xxh3_key(source->bytes());
    text += fmt::format("{:016x}{:016x}", key.high, key.low);
  }
  const cache::PrefixKey key = cache::xxh3_key(std::as_bytes(std::span(text)));
  return fmt::format("{:016x}{:016x}", key.high, key.low);
}

bool holds_network(const std::string& path) {
  if (!files::is_folder(path)) return false;
  const std::optional<std::string> config = read_whole_file(path + "/config.json", kMostConfig);
  return config && model::describes_network(*config);
}

Result<LoadedNetwork> load_network(const std::string& path, std::string id, const kernels::KernelTable& table) {
  const Result<files::HfFolder> folder = files::HfFolder::open(path);
  if (!folder) return folder.error();
  const files::SafeTensors file{{}, folder->tensors()};
  Result<model::Network> network = model::Network::load(folder->config(), file, table);
  if (!network) {
    Error error = network.error();
    error.message = fmt::format("{}: {}", path, error.message);
    return error;
  }
  return LoadedNetwork{std::move(id), std::move(*network), count_values(file), digest_of(*folder)};
}

}  // namespace braid::app
