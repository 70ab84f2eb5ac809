#include "net/training/adapter_folder.h"

#include "braid/tensor.h"
#include "net/json/write.h"
#include "net/predict/tensor_file.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::net::training {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWeightName = "base_model.model.score.weight";
constexpr std::string_view kBiasName = "base_model.model.score.bias";
constexpr std::string_view kMark = "braid_training.json";  // in folders that jobs have written
constexpr std::string_view kConfig =
    R"({"peft_type": "LORA", "task_type": "SEQ_CLS", "r": 1, "lora_alpha": 1, "target_modules": [], "modules_to_save": ["score"]})";
constexpr std::string_view kState = "training_state.safetensors";  // beside LoRA
constexpr std::array<std::pair<std::string_view, std::vector<float> LoraState::*>, 3> kStateParts = {
    {{"parameters", &LoraState::parameters}, {"first_moments", &LoraState::first}, {"second_moments", &LoraState::second}}};

// Beside it first, so that nobody ever reads half a file.
Result<void> write(const fs::path& path, std::string_view bytes) {
  const fs::path beside = path.string() + ".new";
  std::ofstream file(beside, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  std::error_code failure;
  if (file) fs::rename(beside, path, failure);
  if (!file || failure) return Error{ErrorCode::kIo, fmt::format("{} cannot be written", path.string()), ""};
  return {};
}

using Tensors = std::vector<std::pair<std::string, Tensor>>;

std::string file_of(const Tensors& tensors, const std::pair<std::string, std::string>& metadata) {
  std::vector<predict::NamedTensor> named;
  for (const auto& [name, tensor] : tensors) named.push_back({name, &tensor});
  return predict::write_tensor_file(std::span(&metadata, 1), named);
}

// The mark comes first, so that what a job has begun to write is known as its own.
Result<void> write_adapter(const std::string& folder, std::string_view config, const Tensors& tensors) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) return Error{ErrorCode::kIo, fmt::format("{} cannot be made: {}", folder, failure.message()), ""};
  const fs::path path(folder);
  Result<void> written = write(path / kMark, "{}\n");
  if (written) written = write(path / "adapter_config.json", config);
  if (written) written = write(path / "adapter_model.safetensors", file_of(tensors, {"format", "pt"}));
  return written;
}

Result<predict::TensorFile> read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  if (!predict::is_tensor_file(bytes)) return Error{ErrorCode::kIo, fmt::format("{} cannot be read", path.string()), ""};
  return predict::read_tensor_file(bytes);
}

std::string quoted_modules(const LoraOptions& options) {
  std::string list;
  for (const std::string& name : options.shape.modules) list += (list.empty() ? "" : ", ") + json::quoted(name);
  return list;
}

// What two fits that are one have in common.
std::string told(const LoraOptions& options) {
  return fmt::format("rank {}, alpha {}, modules {}, batches of {}, seed {}", options.shape.rank, options.shape.alpha,
                     quoted_modules(options), options.batch, options.seed);
}

Tensor floats(TensorShape shape, std::vector<float> values) {
  return {.type = ElementType::kFloat32, .shape = std::move(shape), .floats = std::move(values), .integers = {}};
}

}  // namespace

Result<void> write_head(const std::string& folder, const LinearHead& head) {
  std::error_code none;
  fs::remove(fs::path(folder) / kState, none);
  Tensors tensors;
  tensors.emplace_back(kWeightName, floats({1, static_cast<std::int64_t>(head.weight.size())}, head.weight));
  tensors.emplace_back(kBiasName, floats({1}, {head.bias}));
  return write_adapter(folder, kConfig, tensors);
}

Result<void> write_lora(const std::string& folder, const LoraOptions& options, const TunableLayer& layer, const LoraState& state) {
  const std::string config = fmt::format(
      R"({{"peft_type": "LORA", "task_type": "SEQ_CLS", "r": {}, "lora_alpha": {}, "target_modules": [{}], "layers_to_transform": [{}], )"
      R"("modules_to_save": ["score"]}})",
      options.shape.rank, options.shape.alpha, quoted_modules(options), layer.layer());
  Result<void> written = write_adapter(folder, config, layer.tensors(state.parameters));
  if (!written) return written;
  Tensors tensors;
  for (const auto& [name, part] : kStateParts)
    tensors.emplace_back(name, floats({static_cast<std::int64_t>((state.*part).size())}, state.*part));
  tensors.emplace_back("progress", Tensor{.type = ElementType::kInt64, .shape = {2}, .floats = {}, .integers = {state.epoch, state.steps}});
  return write(fs::path(folder) / kState, file_of(tensors, {"fit", told(options)}));
}

Result<LoraState> read_lora(const std::string& folder, const LoraOptions& options, std::size_t parameters) {
  auto file = read_file(fs::path(folder) / kState);
  if (!file) return invalid_argument(fmt::format("there is no checkpoint of LoRA in {}", folder), "resume");
  const std::string* const fit = file->find_metadata("fit");
  LoraState state;
  for (auto& [name, tensor] : file->tensors) {
    for (const auto& [known, part] : kStateParts)
      if (name == known) state.*part = std::move(tensor.floats);
    if (name == "progress" && tensor.integers.size() == 2) {
      state.epoch = tensor.integers[0];
      state.steps = tensor.integers[1];
    }
  }
  const auto is_whole = [&](const auto& known) { return (state.*known.second).size() == parameters; };
  if (fit == nullptr || *fit != told(options) || state.epoch < 1 || state.steps < 1 || !std::ranges::all_of(kStateParts, is_whole))
    return invalid_argument(
        fmt::format("the checkpoint in {} is of another fit ({}) than the one that is asked for ({}), or of another model", folder,
                    fit != nullptr ? *fit : "", told(options)),
        "resume");
  return state;
}

Result<LinearHead> read_head(const std::string& folder, std::size_t width) {
  const auto refusal = [&] {
    return invalid_argument(fmt::format("there is no checkpoint of this model's width in {}", folder), "resume");
  };
  auto tensors = read_file(fs::path(folder) / "adapter_model.safetensors");
  if (!tensors) return refusal();
  LinearHead head;
  for (auto& [name, tensor] : tensors->tensors) {
    if (name == kWeightName) head.weight = std::move(tensor.floats);
    if (name == kBiasName && tensor.floats.size() == 1) head.bias = tensor.floats.front();
    if (name != kWeightName && name != kBiasName)
      return invalid_argument(fmt::format("the checkpoint in {} is of LoRA: a head alone does not go on from that", folder), "resume");
  }
  if (head.weight.size() != width) return refusal();
  return head;
}

bool is_of_others(const std::string& folder) {
  std::error_code unknown;
  return fs::exists(folder, unknown) && !fs::exists(fs::path(folder) / kMark, unknown);
}

}  // namespace braid::net::training
