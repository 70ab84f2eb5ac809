#include "model/encoders/sentence_modules.h"

#include "model/encoders/encoder_families.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <simdjson.h>
#include <string_view>

namespace braid::model {
namespace {

using simdjson::SUCCESS;
using Json = simdjson::dom::element;

struct File {
  simdjson::dom::parser parser;
  Json root;
};

Error fault(const files::HfFolder& folder, const std::string& name, ErrorCode code, const std::string& what) {
  return {code, fmt::format("{}/{}: {}", folder.path(), name, what), {}};
}

// False: there is none.
Result<bool> open(const files::HfFolder& folder, const std::string& name, File& file) {
  const auto text = folder.text(name);
  if (!text) return text.error();
  if (!*text) return false;
  if (file.parser.parse(**text).get(file.root) != SUCCESS) return fault(folder, name, ErrorCode::kBadFile, "is not JSON");
  return true;
}

Result<Pooling> pooling_of(const files::HfFolder& folder, const std::string& name, const Json& config) {
  constexpr std::array kModes = std::to_array<std::pair<std::string_view, Pooling>>({{"pooling_mode_mean_tokens", Pooling::kMean},
                                                                                     {"pooling_mode_cls_token", Pooling::kFirst},
                                                                                     {"pooling_mode_lasttoken", Pooling::kLast}});
  constexpr std::array kNames = std::to_array<std::pair<std::string_view, Pooling>>(
      {{"mean", Pooling::kMean}, {"cls", Pooling::kFirst}, {"lasttoken", Pooling::kLast}});
  std::string_view mode;
  if (config["pooling_mode"].get(mode) == SUCCESS)
    for (const auto& [known, pooling] : kNames)
      if (known == mode) return pooling;
  std::optional<Pooling> found;
  simdjson::dom::object members;
  if (config.get(members) == SUCCESS) {
    for (const auto member : members) {
      bool on = false;
      if (!member.key.starts_with("pooling_mode_") || member.value.get(on) != SUCCESS || !on) continue;
      const auto* const known = std::ranges::find(kModes, member.key, &std::pair<std::string_view, Pooling>::first);
      if (known == kModes.end() || found)
        return fault(
            folder, name, ErrorCode::kUnsupported,
            fmt::format("'{}' is not served{}; expected mean, cls or last token alone", member.key, found ? " beside another" : ""));
      found = known->second;
    }
  }
  if (!found) return fault(folder, name, ErrorCode::kBadFile, "names no way of pooling");
  return *found;
}

Result<DenseModule> read_dense(const files::HfFolder& folder, const std::string& path) {
  File file;
  const std::string name = path + "/config.json";
  const auto opened = open(folder, name, file);
  if (!opened) return opened.error();
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  if (!*opened || file.root["in_features"].get(inputs) != SUCCESS || file.root["out_features"].get(outputs) != SUCCESS)
    return fault(folder, name, ErrorCode::kBadFile, "lacks 'in_features' or 'out_features'");
  DenseModule module;
  std::string_view activation;
  if (file.root["activation_function"].get(activation) != SUCCESS) activation = "torch.nn.modules.activation.Tanh";
  if (activation.ends_with(".Tanh")) {
    module.shape.activation = EncoderActivation::kTanh;
  } else if (activation.ends_with(".ReLU")) {
    module.shape.activation = EncoderActivation::kRelu;
  } else if (activation.ends_with(".GELU")) {
    module.shape.activation = EncoderActivation::kGelu;
  } else if (!activation.ends_with(".Identity")) {
    return fault(folder, name, ErrorCode::kUnsupported, fmt::format("the activation '{}' is not known", activation));
  }
  module.shape.linear = linear_of("linear", outputs, inputs);
  const std::string weights = path + "/model.safetensors";
  auto bytes = folder.text(weights);
  if (!bytes) return bytes.error();
  if (!*bytes)
    return fault(folder, weights, ErrorCode::kUnsupported, "is missing: save the model with a current version of sentence-transformers");
  module.bytes = std::make_shared<const std::string>(std::move(**bytes));
  auto tensors = files::parse_safetensors(std::as_bytes(std::span(*module.bytes)));
  if (!tensors) return fault(folder, weights, tensors.error().code, tensors.error().message);
  module.tensors = std::move(*tensors);
  return module;
}

Result<void> read_module(const files::HfFolder& folder, std::string_view type, const std::string& path, SentenceModules& modules) {
  const std::string_view kind = type.substr(type.rfind('.') == std::string_view::npos ? 0 : type.rfind('.') + 1);
  if (kind == "Transformer" || type.find("custom_st") != std::string_view::npos) return {};
  if (kind == "Normalize") {
    modules.normalizes = true;
    return {};
  }
  if (kind == "Dense") {
    auto dense = read_dense(folder, path);
    if (!dense) return dense.error();
    modules.dense.push_back(std::move(*dense));
    return {};
  }
  if (kind != "Pooling") return fault(folder, "modules.json", ErrorCode::kUnsupported, fmt::format("the module '{}' is not served", type));
  File file;
  const std::string name = path + "/config.json";
  const auto opened = open(folder, name, file);
  if (!opened) return opened.error();
  if (!*opened) return fault(folder, name, ErrorCode::kBadFile, "is missing");
  const auto pooling = pooling_of(folder, name, file.root);
  if (!pooling) return pooling.error();
  modules.pooling = *pooling;
  return {};
}

// Jina v3's config.json has its tasks' words itself.
void read_task_prompts(const Json& config, SentenceModules& modules) {
  simdjson::dom::object instructions;
  if (config["task_instructions"].get(instructions) != SUCCESS) return;
  for (const auto instruction : instructions) {
    std::string_view text;
    const auto has_name = [&](const auto& prompt) { return prompt.first == instruction.key; };
    if (instruction.value.get(text) == SUCCESS && std::ranges::none_of(modules.prompts, has_name))
      modules.prompts.emplace_back(std::string(instruction.key), std::string(text));
  }
}

Result<void> read_prompts(const files::HfFolder& folder, SentenceModules& modules) {
  File file;
  const auto opened = open(folder, "config_sentence_transformers.json", file);
  if (!opened) return opened.error();
  simdjson::dom::object prompts;
  if (!*opened) return {};
  if (file.root["prompts"].get(prompts) == SUCCESS)
    for (const auto prompt : prompts) {
      std::string_view text;
      if (prompt.value.get(text) == SUCCESS) modules.prompts.emplace_back(std::string(prompt.key), std::string(text));
    }
  std::string_view name;
  if (file.root["default_prompt_name"].get(name) == SUCCESS) modules.default_prompt = name;
  return {};
}

}  // namespace

Result<SentenceModules> read_sentence_modules(const files::HfFolder& folder) {
  SentenceModules modules;
  File config;
  if (const auto opened = open(folder, "config.json", config); !opened) return opened.error();
  simdjson::dom::array sizes;
  if (config.root["matryoshka_dimensions"].get(sizes) == SUCCESS) {
    for (const Json size : sizes) {
      std::int64_t number = 0;
      if (size.get(number) == SUCCESS && number > 0) modules.dimensions.push_back(number);
    }
  }
  if (const auto read = read_prompts(folder, modules); !read) return read.error();
  read_task_prompts(config.root, modules);
  File bounds;
  const auto bounded = open(folder, "sentence_bert_config.json", bounds);
  if (!bounded) return bounded.error();
  std::int64_t most = 0;
  if (*bounded && bounds.root["max_seq_length"].get(most) == SUCCESS && most > 0 && most < (1 << 30))
    modules.most_tokens = static_cast<std::int32_t>(most);
  File file;
  const auto opened = open(folder, "modules.json", file);
  if (!opened) return opened.error();
  simdjson::dom::array list;
  if (!*opened) return modules;
  if (file.root.get(list) != SUCCESS) return fault(folder, "modules.json", ErrorCode::kBadFile, "is not a list");
  modules.is_there = true;
  for (const Json item : list) {
    std::string_view type;
    std::string_view path;
    if (item["type"].get(type) != SUCCESS || item["path"].get(path) != SUCCESS)
      return fault(folder, "modules.json", ErrorCode::kBadFile, "an item lacks its 'type' or its 'path'");
    if (const auto read = read_module(folder, type, std::string(path), modules); !read) return read.error();
  }
  return modules;
}

}  // namespace braid::model
