#include "app/encoder_folder.h"

#include "app/fingerprint.h"
#include "app/gguf_texts.h"
#include "app/loaded_model.h"
#include "app/network_folder.h"
#include "app/whole_file.h"
#include "files/gguf.h"
#include "files/hf_folder.h"
#include "files/python_json.h"
#include "kernels/packed_layout.h"
#include "model/encoders/encoder_families.h"
#include "text/folder_text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <fmt/format.h>
#include <simdjson.h>
#include <span>
#include <spdlog/spdlog.h>
#include <utility>

namespace braid::app {
namespace {

constexpr std::size_t kMostEncoderConfig = std::size_t{16} << 20U;

// All that is needed of a folder to compute.
struct EncoderParts {
  model::EncoderShape shape;
  model::EncoderWeights weights;
};

Result<EncoderParts> read_parts(const files::HfFolder& folder, const model::SentenceModules& modules, const kernels::KernelTable& table,
                                kernels::WeightType type) {
  Result<model::EncoderShape> shape = model::read_encoder_folder(folder);
  if (!shape) return shape.error();
  std::vector<model::FolderTensors> tensors;
  std::vector<const model::EncoderTensors*> borrowed;
  tensors.reserve(modules.dense.size());
  std::int64_t width = shape->width;
  for (const model::DenseModule& module : modules.dense) {
    const auto& [inputs, outputs] = std::pair(module.shape.linear.inputs, module.shape.linear.outputs);
    if (inputs != width || outputs < 1)
      return Error{ErrorCode::kBadFile,
                   fmt::format("a dense module takes {} numbers to {}, and a vector has {} before it", inputs, outputs, width),
                   {}};
    width = outputs;
    shape->dense.push_back(module.shape);
    borrowed.push_back(&tensors.emplace_back(module.tensors.tensors));
  }
  Result<model::EncoderWeights> weights =
      model::load_encoder_weights(*shape, model::FolderTensors(folder.tensors()), borrowed, table, type);
  if (!weights) return weights.error();
  return EncoderParts{std::move(*shape), std::move(*weights)};
}

Result<std::unique_ptr<const text::ModelCodec>> read_codec(const files::HfFolder& folder) {
  files::GgufContents contents;
  contents.sources = folder.sources();
  const Result<void> added = text::add_folder_text(folder, contents.metadata);
  if (!added) return added.error();
  return text::ModelCodec::from_gguf(files::GgufFile::from_contents(std::move(contents)));
}

Error named(Error error, const std::string& path) {
  if (!error.message.starts_with(path)) error.message = fmt::format("{}: {}", path, error.message);
  return error;
}

Result<LoadedEncoder> load_folder(const ServedModelOptions& options, const kernels::KernelTable& table, kernels::ThreadTeam& team) {
  const Result<files::HfFolder> folder = files::HfFolder::open(options.model.model);
  if (!folder) return folder.error();
  const Result<model::SentenceModules> modules = model::read_sentence_modules(*folder);
  if (!modules) return modules.error();
  Result<EncoderParts> parts = read_parts(*folder, *modules, table, options.model.float_type.value_or(kernels::WeightType::kF32));
  if (!parts) return named(parts.error(), folder->path());
  auto codec = read_codec(*folder);
  if (!codec) return codec.error();
  LoadedEncoder loaded;
  loaded.codec = std::move(*codec);
  loaded.encoder = std::make_unique<model::TextEncoder>(std::move(parts->shape), std::move(parts->weights), table, team);
  loaded.context = std::min(loaded.encoder->shape().context, modules->most_tokens.value_or(loaded.encoder->shape().context));
  loaded.pooling = modules->pooling.value_or(Pooling::kMean);
  loaded.vectors = vector_rules(*modules, loaded.encoder->vector_width());
  loaded.vectors.tasks = loaded.encoder->shape().tasks;
  loaded.classes = class_rules(folder->config(), loaded.encoder->classes());
  loaded.fingerprint = fingerprint(table.name, kernels::KvType::kF32, digest_of(*folder).substr(0, 16));
  return loaded;
}

// What llama.cpp's converters say of pooling: none, mean, the first token, the last, and of a reranker its head, whose vectors are means.
std::optional<Pooling> pooling_of(std::uint64_t type) {
  constexpr std::array kTypes = {Pooling::kEach, Pooling::kMean, Pooling::kFirst, Pooling::kLast, Pooling::kMean};
  return type < kTypes.size() ? std::optional(kTypes[type]) : std::nullopt;
}

Result<LoadedEncoder> load_file(const ServedModelOptions& options, const kernels::KernelTable& table, kernels::ThreadTeam& team) {
  const Result<files::GgufFile> file = files::GgufFile::open(options.model.model);
  if (!file) return file.error();
  Result<model::EncoderShape> shape = model::read_encoder_gguf(*file);
  if (!shape) return named(shape.error(), file->name());
  const model::GgufTensors tensors(*file);
  const std::vector<const model::EncoderTensors*> modules(shape->dense.size(), &tensors);
  Result<model::EncoderWeights> weights =
      model::load_encoder_weights(*shape, tensors, modules, table, options.model.float_type.value_or(kernels::WeightType::kF32));
  if (!weights) return named(weights.error(), file->name());
  auto codec = text::ModelCodec::from_gguf(*file);
  if (!codec) return codec.error();
  const std::string pooling_key = fmt::format("{}.pooling_type", shape->family);
  const auto pooling_type = file->unsigned_or(pooling_key, 1);
  if (!pooling_type) return pooling_type.error();
  const std::optional<Pooling> pooling = pooling_of(*pooling_type);
  if (!pooling)
    return Error{ErrorCode::kUnsupported, fmt::format("{}: {} is {}, which is not served", file->name(), pooling_key, *pooling_type), {}};
  LoadedEncoder loaded;
  loaded.codec = std::move(*codec);
  loaded.encoder = std::make_unique<model::TextEncoder>(std::move(*shape), std::move(*weights), table, team);
  loaded.context = loaded.encoder->shape().context;
  loaded.pooling = *pooling;
  loaded.vectors.width = loaded.encoder->vector_width();
  loaded.classes = class_rules("{}", loaded.encoder->classes());
  const std::vector<std::string>* const names = class_names_of(*file, loaded.encoder->shape().family);
  if (names != nullptr && names->size() == loaded.classes.labels.size()) loaded.classes.labels = *names;
  loaded.fingerprint = fingerprint(table.name, kernels::KvType::kF32, model_digest(*file, load_options(options.model, 1)));
  return loaded;
}

bool is_encoder_file(const std::string& path) {
  const Result<files::GgufFile> file = files::GgufFile::open(path);
  const auto architecture = file ? file->string_or("general.architecture", "") : Result<std::string>(std::string());
  return architecture && model::is_encoder_architecture(*architecture);
}

}  // namespace

bool holds_encoder(const std::string& path) {
  if (!files::is_folder(path)) return path.ends_with(".gguf") && is_encoder_file(path);
  const std::optional<std::string> config = read_whole_file(path + "/config.json", kMostEncoderConfig);
  return config && model::describes_encoder(files::plain_json(*config));
}

Result<LoadedEncoder> load_encoder(const ServedModelOptions& options, kernels::ThreadTeam& team) {
  const Result<const kernels::KernelTable*> table =
      choose_kernels(options.model, !kernels::is_quantized(options.model.float_type.value_or(kernels::WeightType::kF32)));
  if (!table) return table.error();
  Result<LoadedEncoder> loaded =
      files::is_folder(options.model.model) ? load_folder(options, **table, team) : load_file(options, **table, team);
  if (!loaded) return loaded;
  loaded->id = options.id;
  if (files::is_folder(options.model.model)) loaded->folder = options.model.model;
  loaded->type = options.model.float_type.value_or(kernels::WeightType::kF32);
  if (options.pooling) loaded->pooling = *options.pooling;
  if (options.model.context) loaded->context = std::min(loaded->context, *options.model.context);
  return loaded;
}

VectorRules vector_rules(const model::SentenceModules& modules, std::int64_t width) {
  return {.width = width,
          .unit_length = !modules.is_there || modules.normalizes,
          .dimensions = modules.dimensions,
          .prompts = modules.prompts,
          .default_prompt = modules.default_prompt,
          .tasks = {}};
}

ClassRules class_rules(const std::string& config, std::int64_t classes) {
  ClassRules rules;
  if (classes == 0) return rules;
  for (std::int64_t i = 0; i < classes; ++i) rules.labels.push_back(fmt::format("LABEL_{}", i));
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  if (parser.parse(config).get(root) != simdjson::SUCCESS) return rules;
  for (std::int64_t i = 0; i < classes; ++i) {
    std::string_view label;
    if (root["id2label"][fmt::format("{}", i)].get(label) == simdjson::SUCCESS) rules.labels[static_cast<std::size_t>(i)] = label;
  }
  std::string_view problem;
  if (root["problem_type"].get(problem) != simdjson::SUCCESS)
    problem = classes == 1 ? "multi_label_classification" : "single_label_classification";
  rules.activation = problem == "regression"                   ? ScoreActivation::kNone
                     : problem == "multi_label_classification" ? ScoreActivation::kSigmoid
                                                               : ScoreActivation::kSoftmax;
  // sentence-transformers' cross-encoders say it by the name of a module of torch.
  std::string_view function;
  if (root["sentence_transformers"]["activation_fn"].get(function) == simdjson::SUCCESS ||
      root["sbert_ce_default_activation_function"].get(function) == simdjson::SUCCESS)
    rules.relevance = function.ends_with("Identity") ? ScoreActivation::kNone : ScoreActivation::kSigmoid;
  return rules;
}

}  // namespace braid::app
