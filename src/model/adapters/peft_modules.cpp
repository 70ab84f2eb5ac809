#include "model/adapters/peft_modules.h"

#include "files/safetensors.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <optional>
#include <string_view>
#include <utility>

namespace braid::model {
namespace {

using kernels::WeightType;

enum class Part { kDown, kUp, kUpBias, kTableDown, kTableUp, kMagnitude, kWeight, kBias };

constexpr std::array<std::pair<std::string_view, Part>, 8> kPeftParts = {{
    {".lora_A.weight", Part::kDown},
    {".lora_B.weight", Part::kUp},
    {".lora_B.bias", Part::kUpBias},
    {".lora_embedding_A", Part::kTableDown},
    {".lora_embedding_B", Part::kTableUp},
    {".lora_magnitude_vector", Part::kMagnitude},
    {".weight", Part::kWeight},
    {".bias", Part::kBias},
}};

std::optional<WeightType> type_of(std::string_view dtype) {
  if (dtype == "F32") return WeightType::kF32;
  if (dtype == "F16") return WeightType::kF16;
  if (dtype == "BF16") return WeightType::kBF16;
  return std::nullopt;
}

void remove_all(std::string& name, std::string_view part) {
  for (std::size_t at = name.find(part); at != std::string::npos; at = name.find(part)) name.erase(at, part.size());
}

// As the base's own code names it, and without what wrappers put between: ".default" is the adapter's name within PEFT.
std::string plain_name(std::string name) {
  for (const std::string_view prefix : {"base_model.model.", "base_model."})
    if (name.starts_with(prefix)) {
      name.erase(0, prefix.size());
      break;
    }
  for (const std::string_view part : {".default", ".modules_to_save", ".base_layer"}) remove_all(name, part);
  if (name.ends_with(".lora_magnitude_vector.weight")) name.erase(name.size() - std::string_view(".weight").size());
  return name;
}

class ModuleReader {
 public:
  explicit ModuleReader(const PeftConfig& config) : config_(config) {}

  std::optional<Error> error;

  void add(const std::string& name, const files::SafeTensor& tensor) {
    const std::string plain = plain_name(name);
    if (plain.find(".original_module.") != std::string::npos) return;  // the base's own, beside what was saved
    const auto part = std::ranges::find_if(kPeftParts, [&](const auto& known) { return plain.ends_with(known.first); });
    if (part == kPeftParts.end()) return fail(ErrorCode::kUnsupported, name, "is no part of a LoRA that this build knows");
    const std::string name_of_module = plain.substr(0, plain.size() - part->first.size());
    if (config_.adapts_parameter_of(name_of_module))
      return fail(ErrorCode::kUnsupported, name,
                  "adapts a parameter that is no layer's matrix (target_parameters), which this build cannot compute");
    const auto type = type_of(tensor.dtype);
    if (!type) return fail(ErrorCode::kUnsupported, name, fmt::format("found type {}, expected F32, F16 or BF16", tensor.dtype));
    StoredTensor stored{.name = name, .type = *type, .shape = tensor.shape, .bytes = tensor.bytes};
    if (part->second == Part::kMagnitude || part->second == Part::kBias) std::erase(stored.shape, 1);
    if (stored.shape.empty()) stored.shape = {1};
    PeftModule& module = modules_[name_of_module];
    if (StoredTensor& place = place_of(module, part->second); place.empty()) {
      place = std::move(stored);
    } else {
      fail(ErrorCode::kBadFile, name, fmt::format("says the same as {}", place.name));
    }
  }

  std::map<std::string, PeftModule> take() {
    for (auto& [name, module] : modules_) complete(name, module);
    return std::move(modules_);
  }

 private:
  void fail(ErrorCode code, const std::string& tensor, const std::string& what) {
    if (!error) error = Error{code, fmt::format("{}: tensor {}: {}", config_.path, tensor, what), {}};
  }

  static StoredTensor& place_of(PeftModule& module, Part part) {
    StoredMatrix& stored = module.stored;
    switch (part) {
      case Part::kTableDown:
        module.is_table = true;
        return stored.down;
      case Part::kDown:
        return stored.down;
      case Part::kTableUp:
        module.is_table = true;
        return stored.up;
      case Part::kUp:
        return stored.up;
      case Part::kUpBias:
        return stored.up_bias;
      case Part::kMagnitude:
        return stored.magnitude;
      case Part::kWeight:
        return stored.replacement;
      case Part::kBias:
        break;
    }
    return stored.bias;
  }

  void complete(const std::string& name, PeftModule& module) {
    StoredMatrix& stored = module.stored;
    const auto missing = [&](std::string_view part) {
      fail(ErrorCode::kBadFile, fmt::format("{}{}", name, part), fmt::format("is missing; {} is there", stored.said_by()));
    };
    if (stored.down.empty() && !stored.up.empty()) return missing(module.is_table ? ".lora_embedding_A" : ".lora_A.weight");
    if (stored.up.empty() && !stored.down.empty()) return missing(module.is_table ? ".lora_embedding_B" : ".lora_B.weight");
    if (stored.up.empty() && (!stored.magnitude.empty() || !stored.up_bias.empty())) return missing(".lora_B.weight");
    if (config_.magnitudes && !stored.up.empty() && stored.magnitude.empty()) return missing(".lora_magnitude_vector");
    if (stored.up.empty()) return;
    for (const StoredTensor* matrix : {&stored.down, &stored.up})
      if (matrix->shape.size() != 2)
        return fail(ErrorCode::kUnsupported, matrix->name,
                    fmt::format("has {} dimensions; this build adapts matrices only", matrix->shape.size()));
    const auto rank = static_cast<std::int32_t>(std::min<std::int64_t>(stored.up.columns(), 1 << 20));
    if (const std::int32_t said = config_.rank_of(name); said != rank)
      return fail(ErrorCode::kBadFile, stored.up.name, fmt::format("has the rank {}, and adapter_config.json says {}", rank, said));
    stored.scale = config_.scale_of(name, rank);
  }

  const PeftConfig& config_;
  std::map<std::string, PeftModule> modules_;
};

}  // namespace

Result<std::map<std::string, PeftModule>> read_peft_modules(const PeftConfig& config, const files::ByteSource& source) {
  const Result<files::SafeTensors> contents = files::parse_safetensors(source.bytes());
  if (!contents) return Error{contents.error().code, fmt::format("{}: {}", source.name(), contents.error().message), {}};
  if (contents->tensors.empty()) return Error{ErrorCode::kBadFile, source.name() + ": holds no tensors", {}};
  ModuleReader reader(config);
  for (const auto& [name, tensor] : contents->tensors) reader.add(name, tensor);
  if (!reader.error && !config.parameters.empty())
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: 'target_parameters' has '{}', and no tensor is its", config.path, config.parameters.front()),
                 {}};
  std::map<std::string, PeftModule> modules;
  if (!reader.error) modules = reader.take();
  if (reader.error) return *reader.error;
  return modules;
}

}  // namespace braid::model
