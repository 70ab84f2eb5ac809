// Small networks (`/v1/predict`) from their folders: a config.json whose model_type is "braid-net" beside model.safetensors.
#pragma once

#include "braid/result.h"
#include "files/hf_folder.h"
#include "kernels/kernel_table.h"
#include "model/networks/network.h"

#include <cstdint>
#include <string>

namespace braid::app {

// Whether the folder says that it holds one. What is no folder, or says nothing, does not.
bool holds_network(const std::string& path);

struct LoadedNetwork {
  std::string id;
  model::Network network;
  std::int64_t parameters = 0;
  std::string revision;  // 32 hexadecimal digits of its files
};

// 32 hexadecimal digits of the folder's config.json and of all bytes of its weights.
std::string digest_of(const files::HfFolder& folder);

// kBadFile or kUnsupported, with the folder's name.
Result<LoadedNetwork> load_network(const std::string& path, std::string id, const kernels::KernelTable& table);

}  // namespace braid::app
