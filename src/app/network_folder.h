// Small networks (`/v1/predict`) from their folders: a config.json whose model_type is "braid-net" beside model.safetensors.
#pragma once

#include "braid/result.h"
#include "braid/weights.h"
#include "files/byte_source.h"
#include "files/hf_folder.h"
#include "kernels/kernel_table.h"
#include "model/networks/network.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace braid::app {

// Whether the folder says that it holds one. What is no folder, or says nothing, does not.
bool holds_network(const std::string& path);

// Immutable; any thread.
struct NetworkRevision {
  std::shared_ptr<const model::Network> network;
  std::shared_ptr<const files::ByteSource> tensors;  // a safetensors file of its own
  std::string digest;                                // 32 hexadecimal digits of its configuration and tensors
};

// What all revisions of a network have in common.
struct NetworkBase {
  std::string config;
  const kernels::KernelTable* table;
  kernels::WeightType type;  // of its matrices
};

struct LoadedNetwork {
  std::string id;
  NetworkBase base;
  NetworkRevision first;
  std::int64_t parameters = 0;
};

// 32 hexadecimal digits of the folder's config.json and of all bytes of its weights.
std::string digest_of(const files::HfFolder& folder);

// kBadFile or kUnsupported, with the folder's name.
Result<LoadedNetwork> load_network(const std::string& path, std::string id, const kernels::KernelTable& table, kernels::WeightType type);

// The revision with newer tensors, which are those of `current` by name and shape. Any thread. kInvalidArgument: a sentence that names the
// tensor; kNotFound: the file.
Result<NetworkRevision> newer_revision(const NetworkBase& base, const NetworkRevision& current, const WeightSource& source);

// Of each tensor, in the order of the names.
std::vector<TensorDigest> digests_of(const NetworkRevision& revision);

}  // namespace braid::app
