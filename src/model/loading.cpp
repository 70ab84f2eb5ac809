// A model from its file: what is checked before any large allocation, what it will take, and what is made of it.
#include "kernels/numerics.h"
#include "model/drafting/eagle_drafter.h"
#include "model/drafting/mtp_drafter.h"
#include "model/families/families.h"
#include "model/language_model.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace braid::model {
namespace {

// Logits of a step are computed and sampled in groups of at most this many bytes, so that no batch x vocabulary buffer exists.
constexpr std::int64_t kLogitBytes = std::int64_t{32} << 20;

// What checking the file against the options gives, before any large allocation.
struct Dimensions {
  ModelShape model;
  std::int32_t context = 0;
  KvGroups kv;
  WorkspaceShape workspace;
};

KvGroups kv_of_stage(const ModelShape& model, std::int32_t block_tokens, kernels::KvType type, const Packing& packing) {
  KvGroups all = model.kv_groups(block_tokens, type, packing.share);
  if (packing.stage.count == 1) return all;
  return all.of_layers(packing.stage.begin(model.layers.size()), packing.stage.end(model.layers.size()));
}

Result<Dimensions> read_dimensions(const files::GgufFile& file, const kernels::KernelTable& table, const LoadOptions& options,
                                   int members) {
  auto model = describe_model(file);
  if (!model) return model.error();
  const std::int32_t context = options.context_length > 0 ? options.context_length : model->context_length;
  if (context > model->context_length)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: a context of {} tokens was asked for, the model has {}", file.name(), context, model->context_length),
                 {}};
  const std::int32_t block = options.block_tokens;
  if (block != 8 && block != 16 && block != 32 && block != 64)
    return Error{ErrorCode::kInvalidArgument, fmt::format("a block of {} tokens was asked for, expected 8, 16, 32 or 64", block), {}};
  if (options.kv_limit != 0 && options.kv_limit <= kSinkTokens)
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("a KV limit of {} tokens was asked for, expected more than the {} that are always kept", options.kv_limit, kSinkTokens),
        {}};
  model->kv_limit = options.kv_limit;
  if (!options.heads || options.eagle != nullptr || options.passes != nullptr || options.exchange != nullptr) model->prediction.reset();
  return Dimensions{.model = *model,
                    .context = context,
                    .kv = kv_of_stage(*model, block, options.kv_type.value_or(table.kv_type), options.packing),
                    .workspace = {.rows = options.pass_rows,
                                  .logit_rows = logit_rows_at_once(model->vocab, options.pass_rows),
                                  .members = members,
                                  .drafts = model->is_recurrent() ? options.state_drafts : 0,
                                  .parts = std::max(64, (context + kernels::kChunkTokens - 1) / kernels::kChunkTokens)}};
}

}  // namespace

std::int32_t logit_rows_at_once(std::int32_t vocab, std::int32_t pass_rows) {
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(kLogitBytes / (std::int64_t{vocab} * 4), 16, pass_rows));
}

namespace {

// What a head that guesses takes, and its weights where they are not among the model's.
struct HeadBytes {
  std::uint64_t weights = 0;
  std::uint64_t workspace = 0;
};

Result<HeadBytes> head_bytes(const ModelShape& model, const Weights& weights, const kernels::KernelTable& table,
                             const LoadOptions& options) {
  const auto workspace = [&](const HeadModel& head) { return HeadDrafter::bytes(head, table, options.threads, options.block_tokens); };
  if (options.eagle != nullptr) {
    const EagleHead& eagle = *options.eagle;
    const auto own = check_weights(eagle.file, eagle.shape, eagle.shape.context_length, table, options.packing);
    if (!own) return own.error();
    return HeadBytes{own->packed_bytes, workspace(EagleDrafter::head_of(eagle, model, *own, weights))};
  }
  return HeadBytes{0, model.prediction ? workspace(MtpDrafter::head_of(model, weights)) : 0};
}

}  // namespace

Result<MemoryEstimate> estimate_memory(const files::GgufFile& file, const kernels::KernelTable& table, const LoadOptions& options) {
  auto dimensions = read_dimensions(file, table, options, options.threads);
  if (!dimensions) return dimensions.error();
  auto weights = check_weights(file, dimensions->model, dimensions->context, table, options.packing);
  if (!weights) return weights.error();
  auto heads = head_bytes(dimensions->model, *weights, table, options);
  if (!heads) return heads.error();
  return MemoryEstimate{.weights = weights->packed_bytes + heads->weights,
                        .workspace = Workspace::bytes(dimensions->model, *weights, table, dimensions->workspace) + heads->workspace,
                        .kv_block = dimensions->kv.block_bytes(),
                        .context = dimensions->context,
                        .kv_groups = dimensions->kv.visibilities(),
                        .state_blocks = dimensions->kv.states.blocks()};
}

Result<std::unique_ptr<LanguageModel>> LanguageModel::load(const files::GgufFile& file, const kernels::KernelTable& table,
                                                           LoadOptions options) {
  auto own_team = options.team == nullptr ? std::make_unique<kernels::ThreadTeam>(options.threads, options.cpus) : nullptr;
  if (own_team != nullptr) options.team = own_team.get();
  kernels::ThreadTeam& team = *options.team;
  auto dimensions = read_dimensions(file, table, options, team.size());
  if (!dimensions) return dimensions.error();
  std::shared_ptr<const Weights> weights = std::move(options.weights);
  if (options.passes != nullptr) {
    auto checked = check_weights(file, dimensions->model, dimensions->context, table, options.packing);
    if (!checked) return checked.error();
    weights = std::make_shared<const Weights>(std::move(*checked));
  } else if (weights == nullptr) {
    kernels::ThreadTeam& packers = options.packers != nullptr ? *options.packers : team;
    auto loaded =
        load_weights(file, dimensions->model, dimensions->context, table, packers, options.progress, options.packing, options.huge_pages);
    if (!loaded) return loaded.error();
    weights = std::make_shared<const Weights>(std::move(*loaded));
  }
  if (options.passes != nullptr) dimensions->workspace.rows = dimensions->workspace.logit_rows = 1;
  auto space = Workspace::create(dimensions->model, *weights, table, dimensions->workspace, options.huge_pages);
  if (!space) return space.error();
  auto model =
      std::unique_ptr<LanguageModel>(new LanguageModel(dimensions->model, table, std::move(options), dimensions->context, dimensions->kv,
                                                       std::move(own_team), std::move(weights), std::move(*space)));
  if (const Result<void> heads = model->make_heads(); !heads) return heads.error();
  return model;
}

LanguageModel::LanguageModel(const ModelShape& model, const kernels::KernelTable& table, LoadOptions options, std::int32_t context,
                             KvGroups kv_groups, std::unique_ptr<kernels::ThreadTeam> own_team, std::shared_ptr<const Weights> weights,
                             Workspace space)
    : model_(model), options_(std::move(options)), context_(context), kv_groups_(std::move(kv_groups)),
      record_groups_(options_.passes != nullptr ? std::optional(model_.kv_groups(kv_groups_.block_tokens(), kv_groups_.layout(0).type))
                                                : std::nullopt),
      own_team_(std::move(own_team)), team_(*options_.team), table_(table), ranks_(options_.packing.share, options_.exchange),
      first_(make_decoder(std::move(weights), options_.passes != nullptr ? options_.passes->loaded() : nullptr)),
      classes_(first_->head.classes()), parameters_(first_->weights->parameters), weight_bytes_(first_->weights->packed_bytes),
      space_(std::move(space)), logit_rows_(static_cast<std::size_t>(logit_rows_at_once(model_.vocab, options_.pass_rows))),
      slots_(static_cast<std::size_t>(options_.max_batch)), pools_(slots_.size()), outputs_(slots_.size()),
      hidden_(static_cast<std::size_t>(model_.embedding)), next_(slots_.size(), 0), drafts_(slots_.size(), model_.vocab, options_.drafter),
      draft_bytes_(shares_blocks() ? drafts_.saved_bytes() : 0) {
  samplers_.reserve(static_cast<std::size_t>(team_.size()));
  for (int member = 0; member < team_.size(); ++member)
    samplers_.emplace_back(table, model_.vocab, context_);  // a copy would lose its reserve
  const auto rows = static_cast<std::size_t>(options_.pass_rows);
  pass_.tokens.reserve(rows);
  pass_.picked.reserve(rows);
  picked_.reserve(rows);
  claims_.reserve(rows + 1);
}

std::shared_ptr<const Decoder> LanguageModel::make_decoder(std::shared_ptr<const Weights> weights, std::shared_ptr<const Copies> copies) {
  ClassHead head = weights->head;
  if (const auto& judging = options_.judging; judging && judging->head_has_yes_first) {
    head = weights->head.difference(*judging->head_has_yes_first ? 0 : 1, *judging->head_has_yes_first ? 1 : 0);
  } else if (judging) {
    head = ClassHead::judging(table_, weights->output, judging->yes, judging->no);
  }
  std::vector<RopeTable> ropes = rope_tables(model_, weights->rope_divisors, weights->stretched_divisors, context_);
  return std::make_shared<const Decoder>(model_, std::move(weights), std::move(head), std::move(ropes), table_, team_, &adapters_, &ranks_,
                                         std::move(copies));
}

Result<std::shared_ptr<const Weights>> LanguageModel::newer_weights(const Weights& older, const files::GgufFile& file) const {
  kernels::ThreadTeam alone(1);
  auto newer = options_.passes != nullptr
                   ? model::newer_values(older, file, model_, context_, table_, options_.packing)
                   : model::newer_weights(older, file, model_, context_, table_, alone, options_.packing, options_.huge_pages);
  if (!newer) return newer.error();
  return std::make_shared<const Weights>(std::move(*newer));
}

}  // namespace braid::model
