#include "app/loaded_model.h"

#include "app/chat_template_file.h"
#include "app/constraint_vocabulary.h"
#include "app/draft_model.h"
#include "app/embedded_model.h"
#include "app/encoder_folder.h"
#include "app/fingerprint.h"
#include "app/judge.h"
#include "app/model_ranks.h"
#include "app/served_models.h"
#include "app/units.h"
#include "files/gguf_tensor_type.h"
#include "files/hf_folder.h"
#include "kernels/select.h"
#include "model/families/families.h"
#include "model/families/older_files.h"
#include "model/kv_identity.h"
#include "model/weights.h"
#include "text/folder_text.h"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <map>
#include <spdlog/spdlog.h>
#include <type_traits>
#include <utility>

namespace braid::app {
namespace {

int threads_of(const ModelOptions& options) { return options.threads > 0 ? options.threads : kernels::usable_cpus(); }

}  // namespace

Result<files::GgufFile> open_folder(const std::string& path) {
  const Result<files::HfFolder> folder = files::HfFolder::open(path);
  if (!folder) return folder.error();
  Result<files::GgufContents> contents = model::read_folder(*folder);
  if (!contents) return contents.error();
  for (const std::string& note : contents->notes) spdlog::warn("{}", note);
  const Result<void> added = text::add_folder_text(*folder, contents->metadata);
  if (!added) return added.error();
  return files::GgufFile::from_contents(std::move(*contents));
}

Result<files::GgufFile> open_model(const std::string& path) {
  if (!path.empty() && path != kEmbeddedModelName) {
    if (files::is_folder(path)) return open_folder(path);
    Result<files::GgufFile> file = files::GgufFile::open(path);
    return file ? model::in_todays_form(std::move(*file)) : std::move(file);
  }
  std::shared_ptr<const files::ByteSource> bytes = embedded_model();
  if (bytes == nullptr)
    return invalid_argument(
        "no model was named, and this braid was built without an embedded one: name a GGUF file or a model's folder, or use --no-model");
  return files::GgufFile::from_bytes(std::move(bytes));
}

Result<const kernels::KernelTable*> choose_kernels(const ModelOptions& options, bool float_weights) {
  if (!options.isa) {
    const kernels::KernelTable& best = kernels::best_kernel_table();
    return float_weights ? &kernels::for_float_weights(best) : &best;
  }
  std::string missing;
  const kernels::KernelTable* table = kernels::kernel_table(*options.isa, missing);
  if (table == nullptr) return invalid_argument(fmt::format("--isa: that tier cannot run here: {}", missing));
  return table;
}

std::int32_t state_drafts(const BatchOptions& batch) { return batch.speculate != DraftMethod::kOff ? 8 * batch.draft_tokens : 0; }

model::LoadOptions load_options(const ModelOptions& options, std::int32_t max_batch) {
  model::LoadOptions load;
  load.threads = threads_of(options);
  load.huge_pages = options.huge_pages;
  load.context_length = options.context.value_or(0);
  load.block_tokens = options.block_size;
  load.kv_type = options.kv_type;
  load.kv_limit = options.max_kv_size;
  load.packing.float_type = options.float_type;
  load.packing.rotated = options.fast_weights;
  load.max_batch = max_batch;
  return load;
}

namespace {

// One for each thread, or none where they are not to be pinned.
Result<std::vector<int>> cpus_to_pin(const ModelOptions& options, int threads) {
  if (!options.pin_threads) return std::vector<int>();
  std::vector<int> cpus = kernels::allowed_cpus();
  if (static_cast<std::size_t>(threads) > cpus.size())
    return invalid_argument(
        fmt::format("--pin-threads needs a CPU for each of {} threads, but this process may use {}", threads, cpus.size()));
  cpus.resize(static_cast<std::size_t>(threads));
  return cpus;
}

// Before weights are read, `untouched` bytes having been promised to others: what a control group does not grant ends the process when it is
// touched.
Result<void> check_memory(const files::GgufFile& file, const kernels::KernelTable& table, const ModelOptions& options,
                          const model::LoadOptions& load, std::uint64_t untouched, std::uint64_t draft) {
  const Result<MemoryLeft> left = memory_left(untouched);
  if (!left) return {};
  const Result<model::MemoryEstimate> needs = model::estimate_memory(file, table, load);
  if (!needs) return needs.error();
  if (needs->weights + needs->workspace + needs->kv_block + draft <= left->bytes) return {};
  return Error{
      ErrorCode::kIo,
      fmt::format("the model needs {} for its weights and {} to compute with{}, but {} leaves {}: raise that, name a smaller model, "
                  "or lower {} and --threads",
                  format_size(needs->weights), format_size(needs->workspace),
                  draft > 0 ? fmt::format(", and {} for its draft", format_size(draft)) : "", left->bound, format_size(left->bytes),
                  options.context ? "--ctx, --max-batch" : "--max-batch"),
      {}};
}

// By their bytes.
std::string main_weight_type(const files::GgufFile& file) {
  std::map<std::string_view, std::size_t> bytes;
  for (const files::GgufTensor& tensor : file.tensors()) bytes[files::gguf_tensor_type(tensor.type)->name] += tensor.bytes.size();
  const auto most = std::ranges::max_element(bytes, {}, [](const auto& type) { return type.second; });
  return most != bytes.end() ? std::string(most->first) : std::string();
}

// The head of a model for classes, or the two words of one that judges.
void set_classes(const std::string& path, const std::string& config, LoadedModel& loaded) {
  loaded.vectors.width = loaded.language_model->shape().embedding;
  loaded.classes = class_rules(config, loaded.language_model->classes());
  loaded.generates = !loaded.classes || loaded.pairs == PairForm::kJudgment;
  if (loaded.classes && files::is_folder(path)) loaded.pooling = Pooling::kLast;
}

// Of a folder; of anything else an empty object.
Result<std::string> config_text(const std::string& path) {
  if (!files::is_folder(path)) return std::string("{}");
  const Result<files::HfFolder> folder = files::HfFolder::open(path);
  if (!folder) return folder.error();
  return folder->config();
}

// As the folder or the file names them.
Result<std::shared_ptr<const model::LoadedTensors>> tensors_of(const std::string& path, const files::GgufFile& file) {
  if (!files::is_folder(path)) return std::make_shared<const model::LoadedTensors>(model::LoadedTensors::of(file));
  const Result<files::HfFolder> folder = files::HfFolder::open(path);
  if (!folder) return folder.error();
  Result<model::LoadedTensors> tensors = model::LoadedTensors::of(*folder);
  if (!tensors) return tensors.error();
  return std::make_shared<const model::LoadedTensors>(std::move(*tensors));
}

// Those that take the place of the model's own; none: it keeps them.
Result<std::vector<text::TemplateSource>> chat_templates(const ModelOptions& options, const files::GgufFile& file) {
  if (!options.chat_template.empty()) return read_chat_template_file(options.chat_template);
  if (options.usual_template.empty()) return std::vector<text::TemplateSource>();
  const auto own = text::read_template_sources(file);
  if (!own) return own.error();
  return own->empty() ? read_chat_template_file(options.usual_template) : std::vector<text::TemplateSource>();
}

// What a folder's own files say of vectors.
Result<void> read_vector_rules(const std::string& path, LoadedModel& loaded) {
  if (!files::is_folder(path)) return {};
  const Result<files::HfFolder> folder = files::HfFolder::open(path);
  if (!folder) return folder.error();
  const Result<model::SentenceModules> modules = model::read_sentence_modules(*folder);
  if (!modules) return modules.error();
  if (!modules->dense.empty())
    return Error{ErrorCode::kUnsupported, fmt::format("{}/modules.json: Dense modules of a model that generates are not served", path), {}};
  loaded.pooling = modules->pooling.value_or(loaded.pooling);
  loaded.vectors = vector_rules(*modules, 0);
  return {};
}

}  // namespace

RequestDefaults sampling_defaults(const files::GgufFile& file) {
  RequestDefaults defaults;
  const auto take = [&](std::string_view key, auto& field, double low, double high) {
    const std::string full = fmt::format("general.sampling.{}", key);
    if (file.find(full) == nullptr) return;
    const auto number = file.number_or(full, 0.0);
    if (number && *number >= low && *number <= high) {
      field = static_cast<typename std::decay_t<decltype(field)>::value_type>(*number);
    } else {
      spdlog::warn("{} is out of range and left out", full);
    }
  };
  take("temp", defaults.temperature, 0.0, 2.0);
  take("top_p", defaults.top_p, 1e-6, 1.0);
  take("top_k", defaults.top_k, 0.0, 1e9);
  take("min_p", defaults.min_p, 0.0, 1.0);
  take("penalty_repeat", defaults.repetition_penalty, 0.01, 10.0);
  return defaults;
}

RequestDefaults or_defaults(RequestDefaults own, const RequestDefaults& others) {
  const auto fill = [](auto& field, const auto& other) {
    if (!field) field = other;
  };
  fill(own.temperature, others.temperature);
  fill(own.top_p, others.top_p);
  fill(own.top_k, others.top_k);
  fill(own.min_p, others.min_p);
  fill(own.repetition_penalty, others.repetition_penalty);
  return own;
}

bool draft_shares_blocks(const LoadedModel& loaded) {
  const model::LanguageModel& model = *loaded.language_model;
  return loaded.draft != nullptr && model.saved_bytes() > model.record_groups().block_bytes();
}

Result<std::unique_ptr<kernels::ThreadTeam>> make_team(const ModelOptions& options) {
  const int threads = threads_of(options);
  Result<std::vector<int>> cpus = cpus_to_pin(options, threads);
  if (!cpus) return cpus.error();
  return std::make_unique<kernels::ThreadTeam>(threads, std::move(*cpus));
}

Result<LoadedModel> load_weights(const ModelOptions& options, const files::GgufFile& file, const Loading& loading) {
  const Result<const kernels::KernelTable*> table =
      choose_kernels(options, model::has_float_weights(file, {options.float_type, options.fast_weights}));
  if (!table) return table.error();

  LoadedModel loaded;
  loaded.id = model_id(options.model.empty() ? kEmbeddedModelName : options.model);
  loaded.table = *table;
  Result<std::shared_ptr<const model::LoadedTensors>> tensors = tensors_of(options.model, file);
  if (!tensors) return tensors.error();
  loaded.tensors = std::move(*tensors);
  const Result<std::string> architecture = file.string_or("general.architecture", "");
  if (!architecture) return architecture.error();
  loaded.architecture = *architecture;
  if (files::is_folder(options.model)) loaded.folder = options.model;
  loaded.weight_type = main_weight_type(file);
  loaded.defaults = sampling_defaults(file);

  if (const Result<void> read = read_vector_rules(options.model, loaded); !read) return read.error();
  auto templates = chat_templates(options, file);
  if (!templates) return templates.error();
  auto codec = text::ModelCodec::from_gguf(file, std::move(*templates));
  if (!codec) return codec.error();
  loaded.codec = std::move(*codec);
  for (const std::string& warning : loaded.codec->warnings()) spdlog::warn("{}", warning);
  loaded.constraints = std::make_unique<const grammar::Compiler>([codec = loaded.codec.get()] { return constraint_vocabulary(*codec); });

  auto eyes = open_eyes(options, *loading.team, *loaded.codec);
  if (!eyes) return eyes.error();
  loaded.eyes = std::move(*eyes);
  std::string digest = model_digest(file, load_options(options, loading.max_batch));
  loaded.weights_digest = digest;
  if (loaded.eyes.tower != nullptr) digest += fmt::format("{:x}", loaded.eyes.tower->weights().revision.front());
  loaded.fingerprint = fingerprint((*table)->name, options.kv_type.value_or((*table)->kv_type), digest);

  model::LoadOptions load = load_options(options, loading.max_batch);
  fit_to_tower(loaded.eyes, load);
  load.state_drafts = loading.state_drafts;
  load.heads = loading.heads;
  load.threads = loading.team->size();
  load.team = loading.team;
  load.packers = loading.packers;
  const auto ends = loaded.codec->end_of_generation();
  load.end_tokens.assign(ends.begin(), ends.end());
  load.progress = loading.progress;
  load.judging = judging_of(loaded.id, options.model, file, *loaded.codec);
  if (load.judging) loaded.pairs = PairForm::kJudgment;
  loaded.threads = load.threads;
  const std::string key = weights_key(options, **table);
  if (loading.shelf != nullptr) load.weights = loading.shelf->find(key);
  if (options.ranks.count > 1) {
    if (loaded.eyes.tower != nullptr) return invalid_argument("--ranks: a model that sees is computed by one process");
    load.weights = nullptr;
    load.state_drafts = 0;
    if (load.judging) return invalid_argument("--ranks: a model that judges is computed by one process");
    auto ranks = start_ranks(options, file, **table, loading.identify_kv, load);
    if (!ranks) return ranks.error();
    loaded.ranks = std::move(ranks->passes);
    loaded.ranks_here = options.ranks.count_here();
    loaded.rank_workspace = ranks->workspace_bytes;
  }
  auto opened = open_draft(options, file, loading);
  if (!opened) return opened.error();
  load.eagle = opened->eagle;
  if (load.weights == nullptr && loaded.ranks == nullptr)
    if (const auto fits = check_memory(file, **table, options, load, loading.untouched, opened->fixed_bytes); !fits) return fits.error();
  auto draft = load_draft(std::move(*opened), options, loading, *loaded.codec);
  if (!draft) return draft.error();
  load.drafter = loaded.draft = std::move(draft->drafter);
  loaded.draft_revision = draft->revision;
  cache::PrefixKey revision;
  if (loading.identify_kv)
    revision = model::model_revision(file, loading.packers != nullptr ? *loading.packers : *loading.team, load.progress);
  auto language_model = model::LanguageModel::load(file, **table, std::move(load));
  if (!language_model) return language_model.error();
  loaded.language_model = std::move(*language_model);
  if (const Result<void> fits = check_fit(loaded.eyes, *loaded.language_model); !fits) return fits.error();
  if (loading.shelf != nullptr && loaded.ranks == nullptr) loading.shelf->put(key, loaded.language_model->first()->weights);
  const Result<std::string> config = config_text(options.model);
  if (!config) return config.error();
  set_classes(options.model, *config, loaded);
  loaded.model_revision = revision;
  return loaded;
}

std::string describe_memory(const LoadedModel& loaded) {
  if (loaded.draft != nullptr)
    return fmt::format("weights {} and {} of the draft, KV pools {} ({} tokens), workspace {}",
                       format_size(loaded.language_model->weight_bytes()), format_size(loaded.draft->model().weight_bytes()),
                       format_size(loaded.kv.bytes), loaded.kv.tokens,
                       format_size(loaded.language_model->workspace_bytes() + loaded.draft->model().workspace_bytes()));
  return fmt::format("weights {}, KV pool {} ({} tokens), workspace {}", format_size(loaded.language_model->weight_bytes()),
                     format_size(loaded.kv.bytes), loaded.kv.tokens, format_size(loaded.language_model->workspace_bytes()));
}

namespace {

// Whole blocks. Says so where that is not even one state.
std::int32_t blocks_of_states(std::uint64_t memory, const LoadedModel& loaded) {
  const model::KvGroups& groups = loaded.language_model->kv_groups();
  const auto blocks = static_cast<std::int32_t>(std::min<std::uint64_t>(memory / groups.block_bytes(), std::uint64_t{1} << 30U));
  if (blocks < groups.states.blocks())
    spdlog::warn("--state-checkpoints: a recurrent state of {} takes {}, more than {}: the prefix cache keeps none", loaded.id,
                 format_size(static_cast<std::uint64_t>(groups.states.blocks()) * groups.block_bytes()), format_size(memory));
  return blocks;
}

}  // namespace

sched::SchedulerOptions scheduler_options(const LoadedModel& loaded, const BatchOptions& batch, std::int32_t block_tokens) {
  sched::SchedulerOptions options;
  options.max_batch = batch.max_batch;
  options.max_batch_tokens = batch.max_batch_tokens;
  options.prefill_slice_ms = batch.prefill_slice_ms;
  options.target_itl_ms = batch.target_itl_ms;
  options.max_waiting = batch.max_waiting;
  options.stall_park = batch.stall_park;
  options.stall_drop = batch.stall_drop;
  options.priority_ageing = batch.priority_ageing;
  options.prefix_cache = batch.prefix_cache;
  options.kv_verify = batch.kv_verify;
  options.kv_identity = loaded.kv_identity;
  options.context_length = loaded.kv.context;
  options.draft_bytes = loaded.language_model->saved_bytes() - loaded.language_model->record_groups().block_bytes();
  options.block_tokens = block_tokens;
  options.groups = loaded.language_model->kv_groups().visibilities();
  options.block_use = loaded.language_model->kv_groups().block_use();
  options.state_blocks = loaded.language_model->kv_groups().states.blocks();
  options.state_interval = batch.state_checkpoints;
  if (batch.state_memory) options.most_state_blocks = blocks_of_states(*batch.state_memory, loaded);
  const auto ends = loaded.codec->end_of_generation();
  options.turn_ends.assign(ends.begin(), ends.end());
  options.blocks = loaded.kv.blocks;
  options.most_blocks = loaded.kv.most_blocks;
  options.stretch_beyond = loaded.language_model->shape().stretch_beyond();
  options.media_whole = loaded.eyes.tower != nullptr && loaded.eyes.tower->shape().both_ways;
  // What a guess needs of a recurrent state stays in the process that has it.
  const bool can_guess = loaded.ranks == nullptr || options.state_blocks == 0;
  const bool guesses = batch.speculate != DraftMethod::kOff && loaded.generates && can_guess;
  options.draft_tokens = guesses ? batch.draft_tokens : 0;
  options.draft_always = batch.speculate_always;
  return options;
}

}  // namespace braid::app
