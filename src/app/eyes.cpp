#include "app/eyes.h"

#include "app/loaded_model.h"
#include "files/gguf.h"
#include "files/hf_folder.h"
#include "images/reader.h"
#include "kernels/packed_layout.h"
#include "kernels/weight_type.h"
#include "model/images/tower_families.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <system_error>
#include <utility>
#include <vector>

namespace braid::app {
namespace {

namespace fs = std::filesystem;

// Shape, tensors and settings of what is opened.
struct Sight {
  Result<model::TowerShape> shape;
  Result<images::Settings> settings;
};

// Of the matrices, by one of them; of types that towers do not compute with, float32.
kernels::WeightType stored_type(const files::HfFolder& folder, const model::TowerShape& shape) {
  const auto tensor = folder.tensors().find(shape.encoder.layers.front().up.weight);
  if (tensor == folder.tensors().end()) return kernels::WeightType::kF32;
  return tensor->second.dtype == "BF16"  ? kernels::WeightType::kBF16
         : tensor->second.dtype == "F16" ? kernels::WeightType::kF16
                                         : kernels::WeightType::kF32;
}
kernels::WeightType stored_type(const files::GgufFile& file, const model::TowerShape& shape) {
  const files::GgufTensor* const tensor = file.tensor(shape.encoder.layers.front().up.weight);
  const auto type = tensor != nullptr ? static_cast<kernels::WeightType>(tensor->type) : kernels::WeightType::kF32;
  const bool is_own = type == kernels::WeightType::kBF16 || type == kernels::WeightType::kF16 || type == kernels::WeightType::kQ8_0;
  return is_own ? type : kernels::WeightType::kF32;
}

template <class Stored>
Result<Eyes> open_sight(Sight sight, const Stored& stored, const model::EncoderTensors& tensors, const ModelOptions& options,
                        kernels::ThreadTeam& team, const TextCodec& codec) {
  if (!sight.shape) return sight.shape.error();
  if (!sight.settings) return sight.settings.error();
  Eyes eyes;
  auto reader = images::open_reader(std::move(*sight.settings), codec);
  if (!reader) return reader.error();
  eyes.reader = std::move(*reader);
  const kernels::WeightType type = options.float_type.value_or(stored_type(stored, *sight.shape));
  const Result<const kernels::KernelTable*> table = choose_kernels(options, !kernels::is_quantized(type));
  if (!table) return table.error();
  auto weights = model::load_tower_weights(*sight.shape, tensors, **table, type);
  if (!weights) return weights.error();
  eyes.tower = std::make_unique<model::ImageTower>(std::move(*sight.shape), std::move(*weights), **table, team);
  return eyes;
}

Result<Eyes> open_file(const std::string& path, const ModelOptions& options, kernels::ThreadTeam& team, const TextCodec& codec) {
  const Result<files::GgufFile> file = files::GgufFile::open(path);
  if (!file) return file.error();
  if (!model::is_tower_file(*file))
    return invalid_argument(fmt::format("{}: is no file of an image tower: its general.architecture is not \"clip\"", path));
  Result<Eyes> eyes =
      open_sight({model::read_tower_gguf(*file), images::mmproj_settings(*file)}, *file, model::GgufTensors(*file), options, team, codec);
  if (eyes) eyes->file = path;
  return eyes;
}

Result<Eyes> open_folder_eyes(const ModelOptions& options, kernels::ThreadTeam& team, const TextCodec& codec) {
  const Result<files::HfFolder> folder = files::HfFolder::open(options.model);
  if (!folder) return folder.error();
  if (!model::describes_tower(folder->config())) return Eyes();
  return open_sight({model::read_tower_folder(*folder), images::folder_settings(*folder)}, *folder, model::FolderTensors(folder->tensors()),
                    options, team, codec);
}

// As llama.cpp names such files. Empty: there is none, or more than one.
std::string tower_beside(const std::string& model) {
  std::vector<std::string> found;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(model).parent_path(), failed)) {
    const std::string name = entry.path().filename().string();
    if (name.find("mmproj") != std::string::npos && name.ends_with(".gguf")) found.push_back(entry.path().string());
  }
  if (found.size() > 1) spdlog::warn("several mmproj files lie beside {}: name one by --mmproj, or none of them is used", model);
  return found.size() == 1 ? found.front() : std::string();
}

}  // namespace

Result<Eyes> open_eyes(const ModelOptions& options, kernels::ThreadTeam& team, const TextCodec& codec) {
  if (!options.mmproj.empty()) return open_file(options.mmproj, options, team, codec);
  if (options.model.empty()) return Eyes();
  const bool is_folder = files::is_folder(options.model);
  const std::string beside = is_folder || !options.model.ends_with(".gguf") ? std::string() : tower_beside(options.model);
  if (!is_folder && beside.empty()) return Eyes();
  Result<Eyes> eyes = is_folder ? open_folder_eyes(options, team, codec) : open_file(beside, options, team, codec);
  if (eyes) return eyes;
  spdlog::warn("{}: images are not read: {}", options.model, eyes.error().message);
  return Eyes();
}

void fit_to_tower(const Eyes& eyes, model::LoadOptions& options) {
  if (eyes.tower == nullptr) return;
  options.media_both_ways = eyes.tower->shape().both_ways;
  options.media_layers = static_cast<std::int32_t>(eyes.tower->shape().deep.size());
}

Result<void> check_fit(const Eyes& eyes, const model::LanguageModel& model) {
  if (eyes.tower == nullptr) return {};
  const std::int64_t width = model.shape().embedding;
  const auto wrong = [&](const std::string& why) {
    return invalid_argument(fmt::format("{}: {}", eyes.file.empty() ? "the image tower" : eyes.file, why));
  };
  if (eyes.tower->width() != width)
    return wrong(
        fmt::format("its vectors have {} numbers, and the model takes {}: it belongs to another model", eyes.tower->width(), width));
  if (eyes.tower->shape().deep.size() >= model.shape().layers.size()) return wrong("it has more outputs than the model has layers");
  return {};
}

}  // namespace braid::app
