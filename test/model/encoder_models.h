// The tiny encoders of reference/encoders, loaded.
#pragma once

#include "files/hf_folder.h"
#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"
#include "model/encoders/encoder_families.h"
#include "model/encoders/sentence_modules.h"
#include "model/encoders/text_encoder.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace braid::model::test {

inline std::string encoder_path(const std::string& name) { return BRAID_SOURCE_DIR "/test/model/reference/encoders/" + name; }

// Those that describe encoders, in order. Every case of the program asks for them at its start, so no weights are looked at.
inline std::vector<std::string> encoder_folders() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(encoder_path(""))) {
    std::ifstream file(entry.path() / "config.json");
    const std::string config{std::istreambuf_iterator<char>(file), {}};
    if (describes_encoder(config)) names.push_back(entry.path().filename());
  }
  std::ranges::sort(names);
  return names;
}

struct LoadedEncoder {
  SentenceModules modules;
  std::unique_ptr<TextEncoder> encoder;
};

inline LoadedEncoder load_encoder_at(const std::string& path, const kernels::KernelTable& table, kernels::ThreadTeam& team,
                                     kernels::WeightType type = kernels::WeightType::kF32) {
  const files::HfFolder folder = files::HfFolder::open(path).value();
  LoadedEncoder loaded{read_sentence_modules(folder).value(), nullptr};
  EncoderShape shape = read_encoder_folder(folder).value();
  std::vector<FolderTensors> modules;
  for (const DenseModule& module : loaded.modules.dense) {
    shape.dense.push_back(module.shape);
    modules.emplace_back(module.tensors.tensors);
  }
  std::vector<const EncoderTensors*> borrowed;
  for (const FolderTensors& module : modules) borrowed.push_back(&module);
  const FolderTensors tensors(folder.tensors());
  EncoderWeights weights = load_encoder_weights(shape, tensors, borrowed, table, type).value();
  loaded.encoder = std::make_unique<TextEncoder>(std::move(shape), std::move(weights), table, team);
  return loaded;
}

inline LoadedEncoder load_encoder(const std::string& name, const kernels::KernelTable& table, kernels::ThreadTeam& team,
                                  kernels::WeightType type = kernels::WeightType::kF32) {
  return load_encoder_at(encoder_path(name), table, team, type);
}

inline std::vector<std::vector<float>> encode(TextEncoder& encoder, std::vector<step::EncoderText> texts) {
  const std::size_t count = texts.size();
  const auto pass = encoder.begin(std::move(texts));
  while (pass->advance()) {
  }
  std::vector<std::vector<float>> vectors;
  for (std::size_t i = 0; i < count; ++i) vectors.push_back(pass->take(i));
  return vectors;
}

}  // namespace braid::model::test
