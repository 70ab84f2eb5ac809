#include "model/language_model.h"

#include "kernels/numerics.h"
#include "model/families/families.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <limits>
#include <stdexcept>
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
  if (options.kv_grouping == ModelShape::Grouping::kOne && !model->stores_alike())
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: its layers store keys and values of different widths, which the disk cache cannot hold yet: leave out "
                             "--kv-disk",
                             file.name()),
                 {}};
  const std::int64_t logit_rows = kLogitBytes / (std::int64_t{model->vocab} * 4);
  return Dimensions{.model = *model,
                    .context = context,
                    .kv = model->kv_groups(block, options.kv_type.value_or(table.kv_type), options.kv_grouping),
                    .workspace = {.rows = options.pass_rows,
                                  .logit_rows = static_cast<std::int32_t>(std::clamp<std::int64_t>(logit_rows, 16, options.pass_rows)),
                                  .members = members,
                                  .parts = std::max(64, (context + kernels::kChunkTokens - 1) / kernels::kChunkTokens)}};
}

void require(bool condition, const char* what) {
  if (!condition) throw std::logic_error(std::string("step plan: ") + what);
}

}  // namespace

Result<MemoryEstimate> estimate_memory(const files::GgufFile& file, const kernels::KernelTable& table, const LoadOptions& options) {
  auto dimensions = read_dimensions(file, table, options, options.threads);
  if (!dimensions) return dimensions.error();
  auto weights = check_weights(file, dimensions->model, dimensions->context, table, options.packing);
  if (!weights) return weights.error();
  return MemoryEstimate{.weights = weights->packed_bytes,
                        .workspace = Workspace::bytes(dimensions->model, *weights, table, dimensions->workspace),
                        .kv_block = dimensions->kv.block_bytes(),
                        .kv_groups = dimensions->kv.visibilities()};
}

Result<std::unique_ptr<LanguageModel>> LanguageModel::load(const files::GgufFile& file, const kernels::KernelTable& table,
                                                           LoadOptions options) {
  auto team = std::make_unique<kernels::ThreadTeam>(options.threads, options.cpus);
  auto dimensions = read_dimensions(file, table, options, team->size());
  if (!dimensions) return dimensions.error();
  auto weights =
      load_weights(file, dimensions->model, dimensions->context, table, *team, options.progress, options.packing, options.huge_pages);
  if (!weights) return weights.error();
  auto space = Workspace::create(dimensions->model, *weights, table, dimensions->workspace, options.huge_pages);
  if (!space) return space.error();
  return std::unique_ptr<LanguageModel>(new LanguageModel(dimensions->model, table, std::move(options), dimensions->context, dimensions->kv,
                                                          std::move(team), std::move(*weights), std::move(*space)));
}

LanguageModel::LanguageModel(const ModelShape& model, const kernels::KernelTable& table, LoadOptions options, std::int32_t context,
                             KvGroups kv_groups, std::unique_ptr<kernels::ThreadTeam> team, Weights weights, Workspace space)
    : model_(model), options_(std::move(options)), context_(context), kv_groups_(std::move(kv_groups)), team_(std::move(team)),
      weights_(std::move(weights)), ropes_(rope_tables(model_, weights_.rope_divisors, context_)),
      transformer_(model_, weights_, ropes_, table, *team_), space_(std::move(space)), slots_(static_cast<std::size_t>(options_.max_batch)),
      pools_(slots_.size()), hidden_(static_cast<std::size_t>(model_.embedding)) {
  samplers_.reserve(static_cast<std::size_t>(team_->size()));
  for (int member = 0; member < team_->size(); ++member)
    samplers_.emplace_back(table, model_.vocab, context_);  // a copy would lose its reserve
  const auto rows = static_cast<std::size_t>(options_.pass_rows);
  batch_.reserve(rows);
  picked_tokens_.reserve(rows);
  picked_.reserve(rows);
}

Result<void> LanguageModel::allocate_kv(std::int32_t blocks, Prefault prefault) {
  auto arena = KvArena::create(kv_groups_, blocks, options_.huge_pages);
  if (!arena) return arena.error();
  kv_.emplace(std::move(*arena));
  if (prefault == Prefault::kInBackground) {
    kv_growth_.emplace(*kv_);
  } else {
    kv_->prefault(*team_, options_.progress);
  }
  return {};
}

// Blocks are handed out in the order in which the pool grows, and it grows faster than any step fills them, so there is hardly ever
// anything to do here.
void LanguageModel::reach_blocks(const step::StepPlan& plan) {
  if (!kv_growth_) return;
  if (kv_growth_->is_over()) return kv_growth_.reset();
  std::int32_t last = -1;
  for (const std::int32_t block : plan.blocks) last = std::max(last, block);
  for (const step::BlockCopy& load : plan.loads) last = std::max(last, load.block);
  for (const step::BlockFork& fork : plan.forks) last = std::max(last, fork.to);
  kv_growth_->reach(std::min(last + 1, kv_->blocks()));
}

void LanguageModel::execute(const step::StepPlan& plan, step::StepResult& result) {
  const auto begin = std::chrono::steady_clock::now();
  result.clear();
  result.id = plan.id;
  team_->pin_strand();
  reach_blocks(plan);
  try {
    check(plan);
    run(plan, result);
  } catch (...) {
    result.clear();
    result.failure = std::current_exception();
    abandon(plan);
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Everything an address is computed from.
void LanguageModel::check(const step::StepPlan& plan) const {
  require(kv_.has_value(), "there is no KV pool");
  const auto in_vocab = [&](TokenId id) { return id >= 0 && id < model_.vocab; };
  for (const step::SlotStart& start : plan.starts) check_start(start, plan);
  require(std::ranges::all_of(plan.tokens, in_vocab), "token out of the vocabulary");
  const auto in_pool = [&](std::int32_t block) { return block >= 0 && block < kv_->blocks(); };
  const auto is_copy = [&](const step::BlockCopy& copy) { return in_pool(copy.block) && copy.bytes != nullptr; };
  require(std::ranges::all_of(plan.saves, is_copy) && std::ranges::all_of(plan.loads, is_copy), "copied block out of the pool");
  require(std::ranges::all_of(plan.checks, [&](const step::BlockCheck& check) { return in_pool(check.block) && in_pool(check.other); }),
          "checked block out of the pool");
  require(std::ranges::all_of(plan.forks,
                              [&](const step::BlockFork& fork) { return in_pool(fork.from) && in_pool(fork.to) && fork.from != fork.to; }),
          "copied block out of the pool");
  for (const step::StepRow& row : plan.rows) {
    require(row.slot < slots_.size(), "slot out of range");
    require(row.count >= 1 && row.position >= 0 && row.position <= context_ - row.count, "position out of the context");
    const std::size_t tables = std::uint64_t{row.block_count} * kv_groups_.groups.size();
    require(row.block_begin + tables <= plan.blocks.size(), "block table out of range");
    require(std::int64_t{row.block_count} * kv_groups_.block_tokens() >= std::int64_t{row.position} + row.count, "too few blocks");
    for (std::size_t group = 0; group < kv_groups_.groups.size(); ++group)
      check_blocks(std::span(plan.blocks).subspan(row.block_begin + group * row.block_count, row.block_count), row.position,
                   kv_groups_.groups[group].visibility);
    require(row.from_sampler() ? row.count == 1 : row.token_begin + static_cast<std::uint64_t>(row.count) <= plan.tokens.size(),
            "tokens out of range");
    require(row.output != step::RowOutput::kVerify && row.slack == 0 && row.drafts == 0, "this model drafts nothing");
    require(row.scored >= 0 && row.scored <= row.count - (row.output != step::RowOutput::kNone ? 1 : 0), "more scored tokens than logits");
    require(row.scored == 0 ||
                (!row.from_sampler() && std::uint64_t{row.token_begin} + 1 + static_cast<std::uint64_t>(row.scored) <= plan.tokens.size()),
            "scored tokens out of range");
    require(row.scored_top >= 0 && row.scored_top <= kMaxTopLogprobs, "too many top log-probabilities");
  }
}

void LanguageModel::check_start(const step::SlotStart& start, const step::StepPlan& plan) const {
  const auto in_vocab = [&](TokenId id) { return id >= 0 && id < model_.vocab; };
  require(start.slot < slots_.size(), "slot out of range");
  require(std::ranges::all_of(start.stop.stop_token_ids, in_vocab), "stop token out of the vocabulary");
  require(std::ranges::all_of(start.sampling.logit_bias, in_vocab, &LogitBias::token), "biased token out of the vocabulary");
  require(std::uint64_t{start.history_begin} + start.history_count <= plan.tokens.size(), "history out of range");
  require(start.generated >= 0 && (!step::needs_history(start) || start.history_count >= static_cast<std::uint32_t>(start.generated)),
          "no history of what was generated");
}

// Before any row: what the rows write to may be what is saved or checked.
void LanguageModel::move_blocks(const step::StepPlan& plan, step::StepResult& result) {
  const auto for_each = [&](std::size_t count, const auto& body) {
    team_->for_chunks(static_cast<std::int64_t>(count), 1, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = begin; i < end; ++i) body(static_cast<std::size_t>(i));
    });
  };
  const std::size_t bytes = kv_->block_bytes();
  if (!plan.saves.empty())
    for_each(plan.saves.size(), [&](std::size_t i) { std::memcpy(plan.saves[i].bytes, kv_->block(plan.saves[i].block).data(), bytes); });
  for (std::size_t i = 0; i < plan.checks.size(); ++i)
    if (!std::ranges::equal(kv_->block(plan.checks[i].block), kv_->block(plan.checks[i].other)))
      result.unequal.push_back(static_cast<std::uint32_t>(i));
  if (!plan.loads.empty())
    for_each(plan.loads.size(), [&](std::size_t i) { std::memcpy(kv_->block(plan.loads[i].block).data(), plan.loads[i].bytes, bytes); });
  for (const step::BlockFork& fork : plan.forks) std::memcpy(kv_->block(fork.to).data(), kv_->block(fork.from).data(), bytes);
}

// Of the blocks of a row whose first token is at `position`.
void LanguageModel::check_blocks(std::span<const std::int32_t> blocks, std::int32_t position, const step::Visibility& visibility) const {
  const step::Visibility::Blocks invisible = visibility.invisible(position, kv_groups_.block_tokens());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const bool hidden = std::cmp_greater_equal(i, invisible.first) && std::cmp_less(i, invisible.last);
    require(blocks[i] < kv_->blocks() && blocks[i] >= (hidden ? -1 : 0), "block out of the pool");
  }
}

void LanguageModel::run(const step::StepPlan& plan, step::StepResult& result) {
  move_blocks(plan, result);
  start_pass();
  start_slots(plan);
  result.rows.resize(plan.rows.size());
  for (std::size_t index = 0; index < plan.rows.size(); ++index) {
    const step::StepRow& row = plan.rows[index];
    const Slot& slot = slots_[row.slot];
    step::RowResult& row_result = result.rows[index];
    row_result = {.slot = row.slot, .ran = !slot.finished()};
    if (slot.finished()) continue;
    require(!row.from_sampler() || slot.has_sampled(), "nothing was sampled for this slot yet");
    require(!(row.output == step::RowOutput::kVector && pools_[row.slot].is_off()), "no pooling was chosen for this slot");
    announce_scored(plan, row, row_result, result);
    for (std::int32_t i = 0; i < row.count; ++i) {
      const TokenId token = row.from_sampler() ? slot.last_token() : plan.tokens[row.token_begin + static_cast<std::size_t>(i)];
      batch_.push_back({token, row.position + i, plan.blocks.data() + row.block_begin, row.block_count});
      if (const auto purpose = purpose_of(row, row_result, i)) {
        picked_tokens_.push_back(static_cast<std::int32_t>(batch_.size() - 1));
        picked_.push_back({index, std::int64_t{row.position} + i + 1, *purpose});
      }
      if (batch_.size() == static_cast<std::size_t>(options_.pass_rows)) run_pass(result);
    }
  }
  if (!batch_.empty()) run_pass(result);
  for (std::size_t index = 0; index < plan.rows.size(); ++index)
    if (result.rows[index].ran) report_vector(plan.rows[index], result.rows[index], result);
}

// What the row's index-th token is picked for, if at all.
std::optional<std::size_t> LanguageModel::purpose_of(const step::StepRow& row, const step::RowResult& row_result,
                                                     std::int32_t index) const {
  const bool is_last = index + 1 == row.count;
  if (row.samples() && is_last) return kSampled;
  if (index < row.scored) return row_result.scored_begin + static_cast<std::size_t>(index);
  if (pools_[row.slot].wants(row.position + index, is_last && row.output == step::RowOutput::kVector)) return kPooled;
  return std::nullopt;
}

void LanguageModel::start_slots(const step::StepPlan& plan) {
  for (const step::SlotStart& start : plan.starts) {
    try {
      slots_[start.slot].start(start, std::span(plan.tokens).subspan(start.history_begin, start.history_count), options_.end_tokens);
    } catch (const std::exception& error) {
      throw step::RowFailure(start.slot, error.what());
    }
    pools_[start.slot].start(start.pooling, model_.embedding);
  }
}

// Makes the places for what the row's logits will say about tokens that are known already.
void LanguageModel::announce_scored(const step::StepPlan& plan, const step::StepRow& row, step::RowResult& row_result,
                                    step::StepResult& result) const {
  row_result.scored_begin = static_cast<std::uint32_t>(result.scored.size());
  row_result.scored_count = static_cast<std::uint32_t>(row.scored);
  for (std::size_t i = 0; i < row_result.scored_count; ++i) {
    const auto top_begin = static_cast<std::uint32_t>(result.top.size());
    result.scored.push_back({plan.tokens[row.token_begin + 1 + i], 0.0F, top_begin, static_cast<std::uint32_t>(row.scored_top)});
    result.top.resize(result.top.size() + static_cast<std::size_t>(row.scored_top));
  }
}

// A failed step leaves no slot half-way: rows of these slots in the plan that is already posted are skipped.
void LanguageModel::abandon(const step::StepPlan& plan) {
  for (const step::StepRow& row : plan.rows)
    if (row.slot < slots_.size()) slots_[row.slot].abandon();
}

void LanguageModel::start_pass() {
  batch_.clear();
  picked_tokens_.clear();
  picked_.clear();
}

void LanguageModel::run_pass(step::StepResult& result) {
  transformer_.forward(batch_, picked_tokens_, *kv_, space_);
  const auto group = static_cast<std::size_t>(space_.shape.logit_rows);
  for (std::size_t begin = 0, end = 0; begin < picked_.size(); begin = end) {
    const auto is_pooled = [&](std::size_t index) { return picked_[index].scored == kPooled; };
    for (end = begin; end < std::min(picked_.size(), begin + group) && !is_pooled(end);) ++end;
    if (end > begin) {
      use_logits(begin, end, result);
    } else {
      pool(end++, result);
    }
  }
  start_pass();
}

void LanguageModel::pool(std::size_t picked, const step::StepResult& result) {
  Pool& pool = pools_[result.rows[picked_[picked].row].slot];
  require(pool.expects(static_cast<std::int32_t>(picked_[picked].position) - 1), "a mean lacks positions");
  transformer_.hidden(static_cast<std::int64_t>(picked), space_, hidden_.data());
  pool.add(hidden_);
}

void LanguageModel::report_vector(const step::StepRow& row, step::RowResult& row_result, step::StepResult& result) const {
  if (row.output != step::RowOutput::kVector) return;
  const std::size_t begin = result.vectors.size();
  result.vectors.resize(begin + hidden_.size());
  if (!pools_[row.slot].write(std::span(result.vectors).subspan(begin))) return;
  row_result.vector_begin = static_cast<std::uint32_t>(begin);
  row_result.vector_count = static_cast<std::uint32_t>(hidden_.size());
}

// Computes the logits of picked_[begin, end) and what they are for.
void LanguageModel::use_logits(std::size_t begin, std::size_t end, step::StepResult& result) {
  transformer_.logits(static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end - begin), space_);
  for (std::size_t i = begin; i < end; ++i) {
    if (picked_[i].scored != kSampled) continue;
    step::RowResult& row = result.rows[picked_[i].row];
    row.top_begin = static_cast<std::uint32_t>(result.top.size());
    row.top_count = static_cast<std::uint32_t>(std::clamp(slots_[row.slot].top_logprobs(), 0, kMaxTopLogprobs));
    result.top.resize(result.top.size() + row.top_count);
  }
  team_->for_chunks(static_cast<std::int64_t>(end - begin), 1, [&](std::int64_t from, std::int64_t to, int member) {
    Sampler& sampler = samplers_[static_cast<std::size_t>(member)];
    for (std::int64_t i = from; i < to; ++i) {
      const Picked& picked = picked_[begin + static_cast<std::size_t>(i)];
      const std::span<const float> logits(space_.logits[i], static_cast<std::size_t>(model_.vocab));
      if (picked.scored == kSampled) {
        sample(sampler, logits, picked, result);
      } else {
        score(sampler, logits, result.scored[picked.scored], result);
      }
    }
  });
}

void LanguageModel::score(Sampler& sampler, std::span<const float> logits, step::ScoredToken& scored, step::StepResult& result) const {
  const Logprob logprob = sampler.log_probability(logits, scored.token, std::span(result.top).subspan(scored.top_begin, scored.top_count));
  scored.logprob = logprob.value;
  scored.top_count = logprob.top_count;
}

void LanguageModel::sample(Sampler& sampler, std::span<const float> logits, const Picked& picked, step::StepResult& result) {
  step::RowResult& row = result.rows[picked.row];
  Slot& slot = slots_[row.slot];
  std::optional<SampledToken> sampled;
  try {
    sampled = sampler.sample(logits, slot.state(picked.position));
    slot.accept(sampled, row);
    row.ruled_out = !sampled && std::ranges::any_of(logits, [](float logit) { return logit > -std::numeric_limits<float>::infinity(); });
  } catch (...) {  // on a thread of the team, and nobody else's fault
    sampled.reset();
    slot.accept(sampled, row);
    row.sampled = false;
    row.failure = std::current_exception();
  }
  const std::span<TokenLogprob> top = std::span(result.top).subspan(row.top_begin, row.top_count);
  row.top_count = 0;
  if (!sampled || slot.top_logprobs() < 0) return;
  const Logprob logprob = sampler.log_probability(logits, sampled->token, top);
  row.logprob = logprob.value;
  row.top_count = logprob.top_count;
}

}  // namespace braid::model
