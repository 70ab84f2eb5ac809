// Small files and libraries for tests.
#pragma once

#include "registry/library.h"
#include "registry/manifest.h"
#include "support/gguf_writer.h"

#include <fstream>
#include <gtest/gtest.h>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace braid::test {

// A GGUF file of the architecture llama with `values` weights.
inline std::string small_gguf(std::size_t values = 32, const std::string& chat_template = "") {
  GgufWriter writer;
  writer.string("general.architecture", "llama").u32("general.file_type", 0).u32("llama.context_length", 2048);
  writer.u32("llama.embedding_length", 16);
  if (!chat_template.empty()) writer.string("tokenizer.chat_template", chat_template);
  writer.tensor_f32("token_embd.weight", {static_cast<std::int64_t>(values)}, std::vector<float>(values, 0.5F));
  const std::vector<std::byte> bytes = writer.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline void write_file(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

inline std::string read_file(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

inline std::unique_ptr<registry::Library> open_library(const std::string& folder, std::vector<std::string> model_folders = {},
                                                       std::vector<std::string>* warnings = nullptr) {
  registry::LibraryOptions options{folder, std::move(model_folders)};
  if (warnings != nullptr) options.warn = [warnings](const std::string& sentence) { warnings->push_back(sentence); };
  auto library = registry::Library::open(std::move(options));
  EXPECT_TRUE(library) << library.error().message;
  return library ? std::move(*library) : nullptr;
}

// The manifest of a model of these weights, whose blobs are put into the library.
inline std::string manifest_of(registry::Library& library, const std::string& weights, const std::string& system = "") {
  using namespace registry;
  std::vector<Layer> layers = {{layer_type(layer::kModel), *library.blobs().put(weights), weights.size()}};
  if (!system.empty()) layers.push_back({layer_type(layer::kSystem), *library.blobs().put(system), system.size()});
  const std::string config = "{}";
  return write_manifest({Layer{std::string(kConfigType), *library.blobs().put(config), config.size()}, std::move(layers)});
}

inline std::vector<std::string> names_of(registry::Library& library, const ModelFilter& filter = {}) {
  const auto models = library.list(filter);
  EXPECT_TRUE(models) << models.error().message;
  std::vector<std::string> names;
  if (models)
    for (const StoredModel& model : *models) names.push_back(model.name);
  return names;
}

}  // namespace braid::test
