#include "app/draft_model.h"

#include "app/loaded_model.h"
#include "app/text_map.h"
#include "files/hf_folder.h"
#include "model/families/families.h"
#include "model/kv_identity.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <string>
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

model::LoadOptions draft_options(const ModelOptions& options, const Loading& loading) {
  model::LoadOptions load = load_options(options, loading.max_batch);
  load.threads = loading.team->size();
  load.team = loading.team;
  load.packers = loading.packers;
  load.context_length = 0;
  load.kv_limit = 0;
  return load;
}

std::string draft_weights_key(const ModelOptions& options, const kernels::KernelTable& table) {
  ModelOptions packing = options;
  packing.model = options.draft;
  packing.context.reset();
  return weights_key(packing, table);
}

}  // namespace

Result<OpenDraft> open_draft(const ModelOptions& options, const files::GgufFile& model, const Loading& loading) {
  OpenDraft open;
  if (options.draft.empty()) return open;
  Result<std::optional<model::EagleHead>> eagle = open_eagle(options.draft, model);
  if (!eagle) return eagle.error();
  if (*eagle) {
    open.eagle = std::make_shared<const model::EagleHead>(std::move(**eagle));
    return open;
  }
  Result<files::GgufFile> file = open_model(options.draft);
  if (!file) return file.error();
  const Result<const kernels::KernelTable*> table =
      choose_kernels(options, model::has_float_weights(*file, {options.float_type, options.fast_weights}));
  if (!table) return table.error();
  const auto estimate = model::estimate_memory(*file, **table, draft_options(options, loading));
  if (!estimate) return estimate.error();
  if (estimate->state_blocks > 0)
    return invalid_argument(fmt::format("--draft {}: a model with recurrent layers cannot go back behind a wrong guess", options.draft));
  const bool is_packed = loading.shelf != nullptr && loading.shelf->find(draft_weights_key(options, **table)) != nullptr;
  open.file = std::move(*file);
  open.table = *table;
  open.fixed_bytes = (is_packed ? 0 : estimate->weights) + estimate->workspace;
  open.block_bytes = estimate->kv_block * estimate->kv_groups.size();
  return open;
}

Result<LoadedDraft> load_draft(OpenDraft open, const ModelOptions& options, const Loading& loading, const text::ModelCodec& codec) {
  LoadedDraft draft;
  if (!open.file) return draft;
  auto own = text::ModelCodec::from_gguf(*open.file);
  if (!own) return own.error();
  std::unique_ptr<const model::TokenMap> map;
  if (const auto difference = difference_of_tokens(codec, **own)) {
    spdlog::info("--draft {}: its tokens are not those of the model ({}): they are mapped by their text", options.draft, *difference);
    map = make_text_map(codec, std::move(*own));
  }
  model::LoadOptions load = draft_options(options, loading);
  const std::string key = draft_weights_key(options, *open.table);
  if (loading.shelf != nullptr) load.weights = loading.shelf->find(key);
  if (loading.identify_kv)
    draft.revision = model::model_revision(*open.file, loading.packers != nullptr ? *loading.packers : *loading.team, load.progress);
  auto language_model = model::LanguageModel::load(*open.file, *open.table, std::move(load));
  if (!language_model) return language_model.error();
  if (loading.shelf != nullptr) loading.shelf->put(key, (*language_model)->first()->weights);
  draft.drafter =
      std::make_shared<model::ModelDrafter>(std::move(*language_model), static_cast<std::size_t>(loading.max_batch), std::move(map));
  return draft;
}

}  // namespace braid::app
