#include "app/draft_model.h"

#include "app/loaded_model.h"

#include <fmt/format.h>
#include <utility>

namespace braid::app {

std::optional<std::string> difference_of_tokens(const text::ModelCodec& large, const text::ModelCodec& small) {
  if (large.vocab_size() != small.vocab_size()) return fmt::format("{} tokens instead of {}", small.vocab_size(), large.vocab_size());
  for (TokenId id = 0; id < large.vocab_size(); ++id)
    if (large.token_bytes(id) != small.token_bytes(id))
      return fmt::format("the token {} is '{}' instead of '{}'", id, small.token_bytes(id), large.token_bytes(id));
  return std::nullopt;
}

Result<std::shared_ptr<model::ModelDrafter>> load_draft(const ModelOptions& options, const Loading& loading,
                                                        const text::ModelCodec& codec) {
  if (options.draft.empty()) return std::shared_ptr<model::ModelDrafter>();
  const Result<files::GgufFile> file = open_model(options.draft);
  if (!file) return file.error();
  const Result<const kernels::KernelTable*> table =
      choose_kernels(options, model::has_float_weights(*file, {options.float_type, options.fast_weights}));
  if (!table) return table.error();
  const auto own = text::ModelCodec::from_gguf(*file);
  if (!own) return own.error();
  if (const auto difference = difference_of_tokens(codec, **own))
    return invalid_argument(fmt::format("--draft {}: its tokens are not those of the model: {}", options.draft, *difference));
  model::LoadOptions load = load_options(options, loading.max_batch);
  load.threads = loading.team->size();
  load.team = loading.team;
  load.packers = loading.packers;
  load.context_length = 0;
  load.kv_limit = 0;
  auto language_model = model::LanguageModel::load(*file, **table, std::move(load));
  if (!language_model) return language_model.error();
  if ((*language_model)->kv_groups().states.blocks() > 0)
    return invalid_argument(fmt::format("--draft {}: a model with recurrent layers cannot go back behind a wrong guess", options.draft));
  return std::make_shared<model::ModelDrafter>(std::move(*language_model), static_cast<std::size_t>(loading.max_batch));
}

}  // namespace braid::app
