// The tiny random models of reference/images, and the images that their references are of (reference/make_images.py).
#pragma once

#include "braid/pixels.h"
#include "files/hf_folder.h"
#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"
#include "model/images/image_tower.h"
#include "model/images/tower_families.h"

#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <memory>
#include <simdjson.h>
#include <string>
#include <utility>
#include <vector>

namespace braid::model::test {

inline std::string image_model_path(const std::string& name) { return BRAID_SOURCE_DIR "/test/model/reference/images/" + name; }

inline std::vector<std::string> image_models() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(image_model_path("")))
    if (entry.is_directory()) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

struct ImageReference {
  Pixels pixels;
  std::vector<TokenId> ids, greedy;
  std::vector<float> features, last_logits, margins;
  TokenId image_token = 0;

  // Runs of the image's tokens.
  std::vector<MediaSpan> spans() const {
    std::vector<MediaSpan> runs;
    for (std::int32_t at = 0; std::cmp_less(at, ids.size()); ++at) {
      if (ids[static_cast<std::size_t>(at)] != image_token) continue;
      if (runs.empty() || runs.back().first + runs.back().count != at) runs.push_back({at, 0, {}});
      ++runs.back().count;
    }
    return runs;
  }
};

// `seed` 0: the reference's; others are other images of the same size.
inline Pixels formula_pixels(simdjson::dom::element facts, std::int32_t seed = 0) {
  Pixels pixels;
  const auto numbers = [](simdjson::dom::element list) {
    std::vector<std::int32_t> out;
    for (const std::int64_t number : simdjson::dom::array(list)) out.push_back(static_cast<std::int32_t>(number));
    return out;
  };
  for (const simdjson::dom::element tile : simdjson::dom::array(facts["tiles"])) {
    const std::vector<std::int32_t> size = numbers(tile);
    const auto index = static_cast<std::int32_t>(pixels.tiles.size()) + seed;
    pixels.tiles.push_back({size[0], size[1]});
    for (std::int32_t c = 0; c < 3; ++c)
      for (std::int32_t y = 0; y < size[0]; ++y)
        for (std::int32_t x = 0; x < size[1]; ++x)
          pixels.values.push_back(static_cast<float>((x * 37 + y * 101 + c * 53 + index * 17 + x * y) % 256) / 127.5F - 1.0F);
  }
  simdjson::dom::element given;
  if (facts["unit"].get(given) == simdjson::SUCCESS)
    for (float& value : pixels.values) value = (value + 1.0F) / 2.0F;
  if (facts["grid"].get(given) == simdjson::SUCCESS) {
    pixels.grid_rows = numbers(given)[0];
    pixels.grid_columns = numbers(given)[1];
    pixels.overview = static_cast<std::int32_t>(std::int64_t(facts["overview"]));
  }
  if (facts["original"].get(given) == simdjson::SUCCESS) {
    pixels.original_height = numbers(given)[0];
    pixels.original_width = numbers(given)[1];
  }
  pixels.vectors = static_cast<std::int32_t>(std::int64_t(facts["vectors"]));
  pixels.digest = {std::uint64_t{7} + static_cast<std::uint64_t>(seed), 9};
  return pixels;
}

inline ImageReference read_image_reference(const std::string& name) {
  simdjson::dom::parser parser;
  const simdjson::dom::element facts = simdjson::dom::element(parser.load(image_model_path(name) + "/reference.json"))["synthetic"];
  ImageReference reference;
  reference.pixels = formula_pixels(facts);
  const auto read = [&](const char* key, auto& into) {
    for (const double number : simdjson::dom::array(facts[key]))
      into.push_back(static_cast<typename std::remove_reference_t<decltype(into)>::value_type>(number));
  };
  read("input_ids", reference.ids);
  read("greedy", reference.greedy);
  read("features", reference.features);
  read("last_logits", reference.last_logits);
  read("margins", reference.margins);
  reference.image_token = static_cast<TokenId>(std::int64_t(facts["image_token"]));
  return reference;
}

inline std::unique_ptr<ImageTower> load_tower(const std::string& name, const kernels::KernelTable& table, kernels::ThreadTeam& team,
                                              kernels::WeightType type = kernels::WeightType::kF32) {
  const files::HfFolder folder = files::HfFolder::open(image_model_path(name)).value();
  TowerShape shape = read_tower_folder(folder).value();
  const FolderTensors tensors(folder.tensors());
  TowerWeights weights = load_tower_weights(shape, tensors, table, type).value();
  return std::make_unique<ImageTower>(std::move(shape), std::move(weights), table, team);
}

inline std::vector<float> encode_image(ImageTower& tower, const Pixels& pixels) {
  tower.check(pixels).value();
  const auto pass = tower.begin(std::make_shared<const Pixels>(pixels));
  while (pass->advance()) {
  }
  return pass->take();
}

}  // namespace braid::model::test
