#include "model/adapters/peft_modules.h"

#include "files/safetensors.h"
#include "model/adapters/peft_experts.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <string_view>
#include <utility>

namespace braid::model {
namespace {

using kernels::WeightType;

enum class Part { kDown, kUp, kUpBias, kTableDown, kTableUp, kMagnitude, kRows, kWeight, kBias };

constexpr std::array<std::pair<std::string_view, Part>, 9> kPeftParts = {{
    {".lora_A.weight", Part::kDown},
    {".lora_B.weight", Part::kUp},
    {".lora_B.bias", Part::kUpBias},
    {".lora_embedding_A", Part::kTableDown},
    {".lora_embedding_B", Part::kTableUp},
    {".lora_magnitude_vector", Part::kMagnitude},
    {".token_adapter.trainable_tokens_delta", Part::kRows},
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
    std::string name_of_module = plain.substr(0, plain.size() - part->first.size());
    const std::optional<std::string> parameter = parameter_of(name, name_of_module);
    if (!parameter) return fail(ErrorCode::kBadFile, name, "is about no parameter that 'target_parameters' has");
    if (is_of_experts(name_of_module, *parameter)) name_of_module += "." + *parameter;
    const auto type = type_of(tensor.dtype);
    if (!type) return fail(ErrorCode::kUnsupported, name, fmt::format("found type {}, expected F32, F16 or BF16", tensor.dtype));
    StoredTensor stored{.name = name, .type = *type, .shape = tensor.shape, .bytes = tensor.bytes};
    if (part->second == Part::kMagnitude || part->second == Part::kBias) std::erase(stored.shape, 1);
    if (stored.shape.empty()) stored.shape = {1};
    if (!stored.is_finite()) return fail(ErrorCode::kBadFile, name, "holds a value that is infinite or no number");
    PeftModule& module = modules_[name_of_module];
    module.parameter = *parameter;
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

  // Of a module with several the wrappers stand one within the other, and names say how deep. Empty: it is the module that is adapted.
  std::optional<std::string> parameter_of(const std::string& tensor, const std::string& module) const {
    const std::vector<std::string_view> all = config_.parameters_of(module);
    if (all.empty()) return "";
    constexpr std::string_view kWithin = ".base_layer";
    std::size_t depth = 0;
    for (std::size_t at = tensor.find(kWithin); at != std::string::npos; at = tensor.find(kWithin, at + 1)) ++depth;
    return depth < all.size() ? std::optional(std::string(all[depth])) : std::nullopt;
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
      case Part::kRows:
        return stored.rows;
      case Part::kWeight:
        return stored.replacement;
      case Part::kBias:
        break;
    }
    return stored.bias;
  }

  // Of an embedding or a head nothing else is said where some of its rows are others.
  void complete_rows(const std::string& name, StoredMatrix& stored) {
    const std::vector<std::int32_t>* tokens = config_.tokens_of(name);
    if (tokens == nullptr)
      return fail(ErrorCode::kBadFile, stored.rows.name, "is there, and 'trainable_token_indices' does not say of which tokens");
    if (stored.rows.shape.size() != 2 || std::cmp_not_equal(stored.rows.shape.front(), tokens->size()))
      return fail(ErrorCode::kBadFile, stored.rows.name,
                  fmt::format("found shape [{}], expected a row for each of {} tokens of 'trainable_token_indices'",
                              fmt::join(stored.rows.shape, ", "), tokens->size()));
    for (const StoredTensor* other : {&stored.down, &stored.up, &stored.bias, &stored.replacement})
      if (!other->empty())
        return fail(ErrorCode::kUnsupported, other->name, fmt::format("is about the same matrix as {}", stored.rows.name));
    stored.tokens = *tokens;
  }

  void complete(const std::string& name, PeftModule& module) {
    StoredMatrix& stored = module.stored;
    if (!stored.rows.empty()) return complete_rows(name, stored);
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
    const std::string pattern_name = module.parameter == "weight" && !name.ends_with(".weight") ? name + ".weight" : name;
    const std::int32_t said = config_.rank_of(pattern_name);
    stored.scale = config_.scale_of(pattern_name, said);
    // All experts' columns lie in one matrix, which part_experts() looks at.
    const bool is_joined = !module.parameter.empty() && is_of_experts(name.substr(0, name.rfind('.')), module.parameter);
    const auto rank = static_cast<std::int32_t>(std::min<std::int64_t>(stored.up.columns(), 1 << 20));
    if (!is_joined && said != rank)
      fail(ErrorCode::kBadFile, stored.up.name, fmt::format("has the rank {}, and adapter_config.json says {}", rank, said));
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
  std::map<std::string, PeftModule> modules;
  if (!reader.error) modules = reader.take();
  if (reader.error) return *reader.error;
  if (!config.tokens.empty() && std::ranges::all_of(modules, [](const auto& known) { return known.second.stored.rows.empty(); }))
    return Error{ErrorCode::kBadFile, fmt::format("{}: 'trainable_token_indices' is set, and no tensor has their rows", config.path), {}};
  for (const std::string& wanted : config.parameters) {
    const auto is_its = [&](const auto& known) {
      const std::string& own = known.second.parameter;
      return !own.empty() && ("." + known.first + (known.first.ends_with("." + own) ? "" : "." + own)).ends_with("." + wanted);
    };
    if (std::ranges::none_of(modules, is_its))
      return Error{ErrorCode::kUnsupported, fmt::format("{}: 'target_parameters' has '{}', and no tensor is its", config.path, wanted), {}};
  }
  return modules;
}

}  // namespace braid::model
