#include "ranks/rank_model.h"

#include "kernels/numerics.h"
#include "kernels/select.h"
#include "model/families/families.h"
#include "model/require.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <utility>

namespace braid::ranks {
namespace {

using model::require;

Result<const kernels::KernelTable*> table_of(const Setup& setup) {
  const kernels::KernelTable& best = kernels::best_kernel_table();
  if (setup.isa < 0) return setup.float_weights != 0 ? &kernels::for_float_weights(best) : &best;
  std::string missing;
  if (const kernels::KernelTable* table = kernels::kernel_table(static_cast<kernels::Isa>(setup.isa), missing)) return table;
  return Error{ErrorCode::kUnsupported, fmt::format("this machine lacks {}, which --isa asks for", missing), {}};
}

// Adds to `seconds` what passes until its end.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() { seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& seconds_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace

Result<std::unique_ptr<RankModel>> RankModel::load(const files::GgufFile& file, const Setup& setup, const model::Share& share,
                                                   model::Exchange& exchange, const files::Progress& progress) {
  const Result<const kernels::KernelTable*> table = table_of(setup);
  if (!table) return table.error();
  auto shape = model::describe_model(file);
  if (!shape) return shape.error();
  shape->kv_limit = setup.kv_limit;
  shape->prediction.reset();  // nobody guesses with it
  auto team = std::make_unique<kernels::ThreadTeam>(setup.threads);
  model::Packing packing{.float_type = {}, .rotated = setup.rotated != 0, .share = share};
  if (setup.float_type >= 0) packing.float_type = static_cast<kernels::WeightType>(setup.float_type);
  auto weights = model::load_weights(file, *shape, setup.context, **table, *team, progress, packing);
  if (!weights) return weights.error();
  const auto kv_type = setup.kv_type < 0 ? (*table)->kv_type : static_cast<kernels::KvType>(setup.kv_type);
  model::KvGroups groups = shape->kv_groups(setup.block_tokens, kv_type, share);
  const model::WorkspaceShape workspace{.rows = setup.pass_rows,
                                        .logit_rows = setup.logit_rows,
                                        .members = team->size(),
                                        .parts = std::max(64, (setup.context + kernels::kChunkTokens - 1) / kernels::kChunkTokens)};
  auto space = model::Workspace::create(*shape, *weights, **table, workspace);
  if (!space) return space.error();
  return std::unique_ptr<RankModel>(new RankModel(std::move(*shape), **table, std::move(team), std::move(groups), std::move(*weights),
                                                  std::move(*space), setup.context, share, exchange));
}

RankModel::RankModel(model::ModelShape shape, const kernels::KernelTable& table, std::unique_ptr<kernels::ThreadTeam> team,
                     model::KvGroups groups, model::Weights weights, model::Workspace space, std::int32_t context,
                     const model::Share& share, model::Exchange& exchange)
    : model_(std::move(shape)), table_(table), team_(std::move(team)), groups_(std::move(groups)), weights_(std::move(weights)),
      ropes_(model::rope_tables(model_, weights_.rope_divisors, context)), gather_(share, &exchange),
      transformer_(model_, weights_, ropes_, table_, *team_, nullptr, &gather_), space_(std::move(space)), context_(context) {}

Ready RankModel::ready() const {
  return {.isa = table_.name,
          .kv_type = static_cast<std::int32_t>(groups_.layout(0).type),
          .weight_bytes = weights_.packed_bytes,
          .block_bytes = groups_.block_bytes()};
}

Result<void> RankModel::allocate(std::int32_t blocks, const files::Progress& progress) {
  if (blocks < 1) return Error{ErrorCode::kInvalidArgument, fmt::format("a pool of {} blocks was asked for", blocks), {}};
  auto arena = model::KvArena::create(groups_, blocks);
  if (!arena) return arena.error();
  kv_.emplace(std::move(*arena));
  kv_->prefault(*team_, progress);
  return {};
}

void RankModel::move(const Moves& moves) {
  require(kv_.has_value(), "there is no pool");
  const auto in_pool = [&](std::int32_t block) { return block >= 0 && block < kv_->blocks(); };
  for (const Moves::Fork& fork : moves.forks) require(in_pool(fork.from) && in_pool(fork.to), "a fork out of the pool");
  require(std::ranges::all_of(moves.given_back, in_pool), "a block out of the pool is given back");
  for (const Moves::Fork& fork : moves.forks) std::memcpy(kv_->block(fork.to).data(), kv_->block(fork.from).data(), kv_->block_bytes());
  if (!moves.given_back.empty()) kv_->give_back(moves.given_back);
}

void RankModel::run(const step::Pass& pass) {
  const Stopwatch watch(seconds_);
  check(pass);
  transformer_.forward(pass, *kv_, space_);
  picked_ = static_cast<std::int64_t>(pass.picked.size());
}

// The server has checked its plan; what came over the wire is checked again, as far as memory depends on it.
void RankModel::check(const step::Pass& pass) const {
  require(kv_.has_value(), "there is no pool");
  require(!pass.tokens.empty() && std::ssize(pass.tokens) <= space_.shape.rows, "too many tokens in a pass");
  const auto holds = [&](std::uint32_t begin, std::size_t count) {
    return begin <= pass.blocks.size() && count <= pass.blocks.size() - begin;
  };
  require(pass.given_parts == 1, "ranks add no vectors behind layers");
  const std::size_t vectors = pass.given.size() / static_cast<std::size_t>(model_.embedding);
  for (const step::PassToken& token : pass.tokens) {
    require(token.token >= 0 && token.token < model_.vocab, "a token beyond the vocabulary");
    require(token.position >= 0 && token.position < context_, "a position beyond the context");
    require(std::int64_t{token.table_size} * groups_.block_tokens() > token.position &&
                holds(token.tables, std::size_t{token.table_size} * groups_.groups.size()),
            "block tables that do not cover a position");
    require(token.given == step::PassToken::kEmbedded || (token.given >= 0 && static_cast<std::size_t>(token.given) < vectors),
            "a vector that is not there");
    require(token.adapter == 0, "ranks have no adapters");
    require(token.ahead == 0, "ranks attend to nothing that comes later");
  }
  require(std::ranges::all_of(pass.blocks, [&](std::int32_t block) { return block >= -1 && block < kv_->blocks(); }),
          "a block out of the pool");
  require(std::ranges::is_sorted(pass.picked) &&
              std::ranges::all_of(pass.picked, [&](std::int32_t i) { return i >= 0 && i < std::ssize(pass.tokens); }),
          "a token is picked that is not there");
  const auto state_blocks = static_cast<std::size_t>(groups_.states.blocks());
  for (const step::PassSequence& sequence : pass.sequences) {
    require(sequence.first >= 0 && sequence.count > 0 && sequence.first + sequence.count <= std::ssize(pass.tokens),
            "a sequence of no tokens");
    require(holds(sequence.state, state_blocks), "a state that is not there");
    require(sequence.snapshot_begin <= pass.snapshots.size() && sequence.snapshot_count <= pass.snapshots.size() - sequence.snapshot_begin,
            "a snapshot that is not there");
  }
  for (const step::PassSnapshot& snapshot : pass.snapshots) require(holds(snapshot.state, state_blocks), "a snapshot's state is not there");
}

model::Rows RankModel::logits(const Wanted& wanted) {
  require(wanted.begin >= 0 && wanted.count > 0 && wanted.count <= space_.shape.logit_rows && wanted.begin + wanted.count <= picked_,
          "logits of tokens that were not picked");
  const Stopwatch watch(seconds_);
  transformer_.logits(wanted.begin, wanted.count, space_);
  return space_.logits;
}

void RankModel::hidden(std::int64_t picked, std::span<float> out) {
  require(picked >= 0 && picked < picked_ && std::ssize(out) == model_.embedding, "a state of a token that was not picked");
  const Stopwatch watch(seconds_);
  transformer_.hidden(picked, space_, out.data());
}

Times RankModel::take_times() {
  const double exchange = gather_.take_seconds();
  return {.compute = std::exchange(seconds_, 0.0) - exchange, .exchange = exchange};
}

}  // namespace braid::ranks
