#include "app/draft_model.h"

#include "app/loaded_model.h"
#include "app/text_map.h"
#include "files/hf_folder.h"
#include "model/families/families.h"
#include "model/kv_identity.h"

#include <fmt/format.h>
#include <optional>
#include <spdlog/spdlog.h>
#include <utility>

namespace braid::app {

namespace {

// nullopt: it is none.
Result<std::optional<model::EagleHead>> open_eagle(const std::string& path, const files::GgufFile& model) {
  if (!files::is_folder(path)) return std::optional<model::EagleHead>();
  const Result<files::HfFolder> folder = files::HfFolder::open(path);
  if (!folder) return folder.error();
  if (!model::is_eagle_head(*folder)) return std::optional<model::EagleHead>();
  const Result<model::ModelShape> shape = model::describe_model(model);
  if (!shape) return shape.error();
  Result<model::EagleHead> head = model::read_eagle_head(*folder, *shape);
  if (!head) return head.error();
  return std::optional(std::move(*head));
}

// It reads what the model reads, as far back as its own context goes.
model::LoadOptions draft_options(const ModelOptions& options, std::int32_t max_batch) {
  model::LoadOptions load = load_options(options, max_batch);
  load.context_length = 0;
  load.kv_limit = 0;
  return load;
}

Result<const kernels::KernelTable*> kernels_of_draft(const ModelOptions& options, const files::GgufFile& file) {
  return choose_kernels(options, model::has_float_weights(file, {options.float_type, options.fast_weights}));
}

}  // namespace

Result<std::uint64_t> draft_block_bytes(const ModelOptions& options, std::int32_t max_batch, int threads, const files::GgufFile& model) {
  if (options.draft.empty()) return std::uint64_t{0};
  const Result<std::optional<model::EagleHead>> eagle = open_eagle(options.draft, model);
  if (!eagle) return eagle.error();
  if (*eagle) return std::uint64_t{0};
  const Result<files::GgufFile> file = open_model(options.draft);
  if (!file) return file.error();
  const Result<const kernels::KernelTable*> table = kernels_of_draft(options, *file);
  if (!table) return table.error();
  model::LoadOptions load = draft_options(options, max_batch);
  load.threads = threads;
  const Result<model::MemoryEstimate> estimate = model::estimate_memory(*file, **table, load);
  if (!estimate) return estimate.error();
  return estimate->kv_block * estimate->kv_groups.size();
}

Result<LoadedDraft> load_draft(const ModelOptions& options, const Loading& loading, const files::GgufFile& model,
                               const text::ModelCodec& codec) {
  if (options.draft.empty()) return LoadedDraft{};
  Result<std::optional<model::EagleHead>> eagle = open_eagle(options.draft, model);
  if (!eagle) return eagle.error();
  if (*eagle) return LoadedDraft{nullptr, std::make_shared<const model::EagleHead>(std::move(**eagle)), {}};
  const Result<files::GgufFile> file = open_model(options.draft);
  if (!file) return file.error();
  const Result<const kernels::KernelTable*> table = kernels_of_draft(options, *file);
  if (!table) return table.error();
  auto own = text::ModelCodec::from_gguf(*file);
  if (!own) return own.error();
  std::unique_ptr<const model::TokenMap> map;
  if (const auto difference = difference_of_tokens(codec, **own)) {
    spdlog::info("--draft {}: its tokens are not those of the model ({}): they are mapped by their text", options.draft, *difference);
    map = make_text_map(codec, std::move(*own));
  }
  model::LoadOptions load = draft_options(options, loading.max_batch);
  load.threads = loading.team->size();
  load.team = loading.team;
  load.packers = loading.packers;
  ModelOptions packing = options;
  packing.model = options.draft;
  packing.context.reset();
  const std::string key = weights_key(packing, **table);
  if (loading.shelf != nullptr) load.weights = loading.shelf->find(key);
  LoadedDraft draft;
  if (loading.identify_kv)
    draft.revision = model::model_revision(*file, loading.packers != nullptr ? *loading.packers : *loading.team, load.progress);
  auto language_model = model::LanguageModel::load(*file, **table, std::move(load));
  if (!language_model) return language_model.error();
  if (loading.shelf != nullptr) loading.shelf->put(key, (*language_model)->first()->weights);
  if ((*language_model)->kv_groups().states.blocks() > 0)
    return invalid_argument(fmt::format("--draft {}: a model with recurrent layers cannot go back behind a wrong guess", options.draft));
  draft.drafter =
      std::make_shared<model::ModelDrafter>(std::move(*language_model), static_cast<std::size_t>(loading.max_batch), std::move(map));
  return draft;
}

}  // namespace braid::app
