// What PEFT calls tensors: "base_model.model." and a module of the base, then which part of it.
#include "files/safetensors.h"
#include "model/adapters/read_adapter.h"
#include "model/families/families.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <optional>
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

struct Module {
  StoredMatrix stored;
  bool is_table = false;
};

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

class TensorNames {
 public:
  TensorNames(const PeftConfig& config, const AdaptedBase& base) : config_(config), base_(base) {}

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
    Module& module = modules_[name_of_module];
    if (StoredTensor& place = place_of(module, part->second); place.empty()) {
      place = std::move(stored);
    } else {
      fail(ErrorCode::kBadFile, name, fmt::format("says the same as {}", place.name));
    }
  }

  // What is said, by the names of the base's file.
  std::vector<StoredMatrix> take() {
    std::map<std::string, std::pair<std::int64_t, std::int64_t>> sizes;  // of modules whose place depends on the family
    std::vector<StoredMatrix> all;
    for (auto& [name, module] : modules_) {
      complete(name, module);
      if (error) return {};
      if (const auto own = table_name(name)) {
        module.stored.name = *own;
        all.push_back(std::move(module.stored));
      } else {
        sizes.emplace(name, size_of(module.stored));
      }
    }
    if (!sizes.empty()) place(sizes, all);
    return all;
  }

 private:
  void fail(ErrorCode code, const std::string& tensor, const std::string& what) {
    if (!error) error = Error{code, fmt::format("{}: tensor {}: {}", config_.path, tensor, what), {}};
  }

  static StoredTensor& place_of(Module& module, Part part) {
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

  // Whose rows lie as they are, whatever the family.
  std::optional<std::string> table_name(const std::string& module) const {
    const std::string_view last = std::string_view(module).substr(module.rfind('.') + 1);
    for (const std::string_view name : {"lm_head", "embed_out"})
      if (last == name) return base_.shape.output.name;
    for (const std::string_view name : {"embed_tokens", "wte", "word_embeddings", "embed_in"})
      if (last == name) return base_.shape.input.name;
    // Of transformers' reward models and classifiers, and of TRL's value heads.
    if (last == "score" || module == "v_head" || module == "v_head.summary" || module == "classifier") return kHeadName;
    return std::nullopt;
  }

  void complete(const std::string& name, Module& module) {
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

  static std::pair<std::int64_t, std::int64_t> size_of(const StoredMatrix& stored) {
    if (!stored.up.empty()) return {stored.up.shape[0], stored.down.shape[1]};
    if (!stored.replacement.empty()) return {stored.replacement.shape.front(), stored.replacement.columns()};
    return {stored.bias.shape.front(), 1};
  }

  void place(const std::map<std::string, std::pair<std::int64_t, std::int64_t>>& sizes, std::vector<StoredMatrix>& all) {
    Result<std::vector<ModulePlace>> places = places_of(sizes);
    if (!places && base_.folder.empty())
      return fail(
          places.error().code, modules_.at(sizes.begin()->first).stored.said_by(),
          fmt::format("where its rows lie in the base's file cannot be told ({}): load the base from its folder, or make a GGUF file of "
                      "the adapter",
                      places.error().message));
    if (!places) {
      error = Error{places.error().code, fmt::format("{}: {}", config_.path, places.error().message), {}};
      return;
    }
    for (ModulePlace& at : *places) {
      StoredMatrix own = modules_.at(at.module).stored;
      own.name = std::move(at.tensor);
      own.expert = at.expert;
      own.order = std::move(at.order);
      own.columns = std::move(at.columns);
      own.factors = std::move(at.factors);
      own.across = at.across;
      all.push_back(std::move(own));
    }
  }

  Result<std::vector<ModulePlace>> places_of(const std::map<std::string, std::pair<std::int64_t, std::int64_t>>& sizes) const {
    if (!base_.folder.empty()) {
      const Result<files::HfFolder> folder = files::HfFolder::open(base_.folder);
      if (!folder) return folder.error();
      return place_modules(*folder, sizes);
    }
    const Result<std::string> config = config_like(base_.shape);
    if (!config) return config.error();
    return place_modules(files::HfFolder::of_config("a folder of the base", *config), sizes);
  }

  const PeftConfig& config_;
  const AdaptedBase& base_;
  std::map<std::string, Module> modules_;
};

}  // namespace

Result<StoredAdapter> read_peft_tensors(std::shared_ptr<const PeftConfig> config, std::shared_ptr<const files::ByteSource> source,
                                        const AdaptedBase& base) {
  const Result<files::SafeTensors> contents = files::parse_safetensors(source->bytes());
  if (!contents) return Error{contents.error().code, fmt::format("{}: {}", source->name(), contents.error().message), {}};
  if (contents->tensors.empty()) return Error{ErrorCode::kBadFile, source->name() + ": holds no tensors", {}};
  TensorNames names(*config, base);
  for (const auto& [name, tensor] : contents->tensors) names.add(name, tensor);
  StoredAdapter adapter{.name = source->name(), .sources = {std::move(source)}, .matrices = {}, .all_layers = config->all_layers};
  if (!names.error && !config->parameters.empty())
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: 'target_parameters' has '{}', and no tensor is its", config->path, config->parameters.front()),
                 {}};
  if (!names.error) adapter.matrices = names.take();
  if (names.error) return *names.error;
  adapter.config = std::move(config);
  return adapter;
}

Result<std::shared_ptr<const files::ByteSource>> with_newer_tensors(const files::ByteSource& older, const files::ByteSource& newer) {
  Result<files::SafeTensors> all = files::parse_safetensors(older.bytes());
  if (!all) return Error{all.error().code, fmt::format("{}: {}", older.name(), all.error().message), {}};
  Result<files::SafeTensors> some = files::parse_safetensors(newer.bytes());
  if (!some) return Error{some.error().code, fmt::format("{}: {}", newer.name(), some.error().message), {}};
  for (auto& [name, tensor] : some->tensors) {
    const auto found = all->tensors.find(name);
    if (found == all->tensors.end())
      return Error{ErrorCode::kBadFile, fmt::format("{}: the adapter has no tensor {}", newer.name(), name), {}};
    found->second = std::move(tensor);
  }
  return files::owned_bytes(files::write_safetensors(*all), newer.name());
}

}  // namespace braid::model
