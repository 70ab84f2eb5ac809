// What a model is made of: a configuration and layers, each a blob.
#pragma once

#include "braid/result.h"
#include "registry/digest.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace braid::registry {

inline constexpr std::string_view kManifestType = "application/vnd.docker.distribution.manifest.v2+json";
inline constexpr std::string_view kConfigType = "application/vnd.docker.container.image.v1+json";

// The last part of a layer's media type, "application/vnd.ollama.image.…".
namespace layer {
inline constexpr std::string_view kModel = "model";
inline constexpr std::string_view kProjector = "projector";
inline constexpr std::string_view kAdapter = "adapter";
inline constexpr std::string_view kTemplate = "template";
inline constexpr std::string_view kSystem = "system";
inline constexpr std::string_view kParameters = "params";
inline constexpr std::string_view kMessages = "messages";
inline constexpr std::string_view kLicence = "license";
inline constexpr std::string_view kFile = "file";  // of a folder of the hub, or a part of a split GGUF file; ours alone
// The files of an adapter in PEFT's form, which are kFile, have names in this folder.
inline constexpr std::string_view kAdapterFolder = "adapter/";
}  // namespace layer

// The names of these files in their folder.
inline constexpr std::string_view kAdapterConfig = "adapter_config.json";
inline constexpr std::string_view kAdapterTensors = "adapter_model.safetensors";

struct Layer {
  std::string media_type;
  Digest digest;
  std::uint64_t bytes = 0;
  std::string name = {};  // of a file that others of the model look for beside them: "config.json", "1_Pooling/config.json"; or empty

  bool is(std::string_view kind) const;
};

std::string layer_type(std::string_view kind);

// Whether it may be Layer::name: at most three parts, each as of a model's name.
bool is_file_name(std::string_view name);

struct Manifest {
  Layer config;
  std::vector<Layer> layers;

  std::uint64_t bytes() const;
  const Layer* find(std::string_view kind) const;  // the first of its kind; null: there is none
  std::vector<const Layer*> blobs() const;         // each once, the configuration too
};

inline constexpr std::size_t kMostManifestBytes = std::size_t{4} << 20;

// Checked: digests, sizes from 0 on, at most 1000 layers. kBadFile with `name` in its sentence.
Result<Manifest> parse_manifest(std::string_view text, std::string_view name);
std::string write_manifest(const Manifest& manifest);

}  // namespace braid::registry
