#include "app/network_folder.h"

#include "app/serving/weight_files.h"
#include "app/whole_file.h"
#include "braid/tensor.h"
#include "cache/prefix_index.h"
#include "files/hf_folder.h"
#include "files/python_json.h"
#include "files/safetensors.h"
#include "model/stored_values.h"

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

std::string digits_of(const cache::PrefixKey& key) { return fmt::format("{:016x}{:016x}", key.high, key.low); }

Result<NetworkRevision> revision_of(const NetworkBase& base, std::vector<std::byte> file) {
  NetworkRevision revision;
  revision.tensors = files::owned_bytes(std::move(file), "model.safetensors");
  const Result<files::SafeTensors> tensors = files::parse_safetensors(revision.tensors->bytes());
  if (!tensors) return tensors.error();
  Result<model::Network> network = model::Network::load(base.config, *tensors, *base.table, base.type);
  if (!network) return network.error();
  revision.network = std::make_shared<const model::Network>(std::move(*network));
  const std::string parts = base.config + digits_of(cache::xxh3_key(revision.tensors->bytes()));
  revision.digest = digits_of(cache::xxh3_key(std::as_bytes(std::span(parts))));
  return revision;
}

Result<NetworkRevision> read_newer(const NetworkBase& base, const NetworkRevision& current, const WeightSource& source) {
  const auto file = read_weights(source);
  if (!file) return file.error();
  const Result<files::SafeTensors> given = files::parse_safetensors((*file)->bytes());
  if (!given) return Error{given.error().code, fmt::format("{}: {}", (*file)->name(), given.error().message), {}};
  const Result<files::SafeTensors> loaded = files::parse_safetensors(current.tensors->bytes());
  if (!loaded) return loaded.error();
  Result<std::vector<std::byte>> all = model::with_newer_values(*loaded, *given, source.partial, (*file)->name());
  if (!all) return all.error();
  return revision_of(base, std::move(*all));
}

}  // namespace

std::string digest_of(const files::HfFolder& folder) {
  std::string text = folder.config();
  for (const auto& source : folder.sources()) {
    const cache::PrefixKey key = cache::xxh3_key(source->bytes());
    text += digits_of(key);
  }
  return digits_of(cache::xxh3_key(std::as_bytes(std::span(text))));
}

bool holds_network(const std::string& path) {
  if (!files::is_folder(path)) return false;
  const std::optional<std::string> config = read_whole_file(path + "/config.json", kMostConfig);
  return config && model::describes_network(files::plain_json(*config));
}

Result<LoadedNetwork> load_network(const std::string& path, std::string id, const kernels::KernelTable& table, kernels::WeightType type) {
  const Result<files::HfFolder> folder = files::HfFolder::open(path);
  if (!folder) return folder.error();
  const files::SafeTensors file{{}, folder->tensors()};
  NetworkBase base{folder->config(), &table, type};
  Result<NetworkRevision> first = revision_of(base, files::write_safetensors(file));
  if (!first) {
    Error error = first.error();
    error.message = fmt::format("{}: {}", path, error.message);
    return error;
  }
  return LoadedNetwork{std::move(id), std::move(base), std::move(*first), count_values(file)};
}

Result<NetworkRevision> newer_revision(const NetworkBase& base, const NetworkRevision& current, const WeightSource& source) {
  Result<NetworkRevision> newer = read_newer(base, current, source);
  if (!newer) return as_refusal(newer.error());
  return newer;
}

std::vector<TensorDigest> digests_of(const NetworkRevision& revision) {
  std::vector<TensorDigest> digests;
  const Result<files::SafeTensors> tensors = files::parse_safetensors(revision.tensors->bytes());
  for (const auto& [name, tensor] : tensors->tensors) {
    const auto floats = model::floats_of(tensor);
    digests.push_back({name, tensor.shape, sha256(floats ? std::as_bytes(std::span(*floats)) : tensor.bytes)});
  }
  return digests;
}

}  // namespace braid::app
