#include "model/language_model.h"

#include "kernels/numerics.h"
#include "model/drafting/eagle_drafter.h"
#include "model/drafting/mtp_drafter.h"
#include "model/families/families.h"
#include "model/require.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <limits>
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

void LanguageModel::execute(const step::StepPlan& plan, step::StepResult& result) {
  team_.pin_strand();
  compute(plan, result);
}

void LanguageModel::compute(const step::StepPlan& plan, step::StepResult& result) {
  const auto begin = std::chrono::steady_clock::now();
  result.clear();
  result.id = plan.id;
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

void LanguageModel::run(const step::StepPlan& plan, step::StepResult& result) {
  drafts_.clear();
  between_layers_ = plan.between_layers;
  move_blocks(plan, result);
  if (draft_bytes_ > 0) move_drafts(plan);
  start_pass();
  start_slots(plan);
  result.rows.resize(plan.rows.size());
  settled_.assign(plan.rows.size(), 0);
  draft(plan, result);
  add_rows(plan, result);
  if (kv_groups_.states.blocks() > 0) copy_states(plan, result);
  for (std::size_t index = 0; index < plan.rows.size(); ++index)
    if (result.rows[index].ran) settle_row(plan.rows[index], result.rows[index], result);
}

const Decoder& LanguageModel::decoder_of(const step::StepRow& row) const {
  const AdapterSet* set = adapters_.find(row.adapter);
  const Decoder* decoder = set != nullptr && set->decoder != nullptr ? set->decoder.get() : first_.get();
  require(decoder != nullptr, "the revision of a row's weights is gone");
  return *decoder;
}

// A pass has one revision of the weights, of which there are seldom two.
void LanguageModel::add_rows(const step::StepPlan& plan, step::StepResult& result) {
  added_.assign(plan.rows.size(), 0);
  for (std::size_t first = 0; first < plan.rows.size(); ++first) {
    if (added_[first] != 0) continue;
    decoder_ = &decoder_of(plan.rows[first]);
    for (std::size_t index = first; index < plan.rows.size(); ++index) {
      if (added_[index] != 0 || &decoder_of(plan.rows[index]) != decoder_) continue;
      added_[index] = 1;
      add_row(plan, index, result);
    }
    if (!pass_.tokens.empty()) run_pass(result);
  }
}

// Its tokens to the pass, which runs whenever it is full. What was drafted comes behind what its slot sampled last.
void LanguageModel::add_row(const step::StepPlan& plan, std::size_t index, step::StepResult& result) {
  const step::StepRow& row = plan.rows[index];
  const Slot& slot = slots_[row.slot];
  step::RowResult& row_result = result.rows[index];
  row_result = {.slot = row.slot, .ran = !slot.finished(), .position = row.position};
  if (slot.finished()) return;
  require(!row.from_sampler() || slot.has_sampled(), "nothing was sampled for this slot yet");
  require(!(row.output == step::RowOutput::kVector && pools_[row.slot].is_off()), "no pooling was chosen for this slot");
  if (row.output == step::RowOutput::kVerify) place_drafts(index, row_result, result);
  announce_scored(plan, row, row_result, result);
  const auto append = [&](std::uint32_t begin, std::size_t count) {
    const auto at = static_cast<std::uint32_t>(pass_.blocks.size());
    const auto blocks = std::span(plan.blocks).subspan(begin, count);
    pass_.blocks.insert(pass_.blocks.end(), blocks.begin(), blocks.end());
    return at;
  };
  const auto state_blocks = static_cast<std::size_t>(kv_groups_.states.blocks());
  const std::span<const TokenId> guesses = drafts_.of(index);
  const std::int32_t count = row.count + row_result.drafted;
  // What is kept of guesses is kept within a pass.
  const bool keeps = state_blocks > 0 && row_result.drafted > 0;
  if (keeps && pass_.tokens.size() + static_cast<std::size_t>(count) > static_cast<std::size_t>(options_.pass_rows)) run_pass(result);
  std::uint32_t tables = 0;
  std::uint32_t snapshot = row.snapshot_begin;
  std::int32_t shift = row.shift;
  for (std::int32_t i = 0; i < count; ++i) {
    const step::GivenVectors* const given = row.given_count > 0 ? given_at(plan, row, i) : nullptr;
    if (given != nullptr && options_.media_both_ways && !pass_.tokens.empty() &&
        pass_.tokens.size() + static_cast<std::size_t>(given->first + given->count - i) > static_cast<std::size_t>(options_.pass_rows))
      run_pass(result);
    if (i == 0 || pass_.tokens.empty()) {
      tables = append(row.block_begin, std::size_t{row.block_count} * kv_groups_.groups.size());
      if (state_blocks > 0) {
        pass_.sequences.push_back({.first = static_cast<std::int64_t>(pass_.tokens.size()),
                                   .is_first = row.position + i == 0,
                                   .state = append(row.state_begin, state_blocks),
                                   .drafted = row_result.drafted,
                                   .kept = kept_,
                                   .snapshot_begin = static_cast<std::uint32_t>(pass_.snapshots.size())});
        pass_rows_.push_back(index);
        kept_ += row_result.drafted;
      }
    }
    const auto place = static_cast<std::size_t>(i);
    const TokenId token = !row.from_sampler() ? plan.tokens[row.token_begin + place] : i == 0 ? slot.last_token() : guesses[place - 1];
    const std::int32_t position = row_result.position + i;
    pass_.tokens.push_back({.token = token,
                            .position = position,
                            .tables = tables,
                            .table_size = row.block_count,
                            .adapter = row.adapter,
                            .shift = shift,
                            .stretched = row.stretched});
    if (given != nullptr) give_vector(*given, i, shift);
    if (state_blocks > 0) {
      step::PassSequence& sequence = pass_.sequences.back();
      ++sequence.count;
      if (snapshot < row.snapshot_begin + row.snapshot_count && plan.snapshots[snapshot].end == position + 1) {
        pass_.snapshots.push_back({sequence.count, append(plan.snapshots[snapshot++].block_begin, state_blocks)});
        ++sequence.snapshot_count;
      }
    }
    if (const auto purpose = purpose_of(row, row_result, i)) {
      pass_.picked.push_back(static_cast<std::int32_t>(pass_.tokens.size() - 1));
      const bool is_guessed = row.output == step::RowOutput::kVerify && i < row_result.drafted;
      picked_.push_back({index, std::int64_t{position} + 1, *purpose, row.from_sampler() ? i : 0, is_guessed ? guesses[place] : kNoGuess});
    }
    if (pass_.tokens.size() == static_cast<std::size_t>(options_.pass_rows)) run_pass(result);
  }
}

// What gives the row's index-th token its vector, or null.
const step::GivenVectors* LanguageModel::given_at(const step::StepPlan& plan, const step::StepRow& row, std::int32_t index) const {
  const auto given = std::span(plan.given).subspan(row.given_begin, row.given_count);
  const auto at = std::ranges::find_if(given, [&](const step::GivenVectors& g) { return index >= g.first && index < g.first + g.count; });
  return at == given.end() ? nullptr : &*at;
}

// To the row's index-th token, the last of the pass. `shift`: of the rotary positions of text before its span, and, once that is over, behind it.
void LanguageModel::give_vector(const step::GivenVectors& given, std::int32_t index, std::int32_t& shift) {
  step::PassToken& token = pass_.tokens.back();
  token.given = static_cast<std::int32_t>(pass_.given.size() / static_cast<std::size_t>(given_width()));
  const auto vector = given.vectors->begin() + (given.begin + index - given.first) * given_width();
  pass_.given.insert(pass_.given.end(), vector, vector + given_width());
  if (options_.media_both_ways) token.ahead = given.first + given.count - 1 - index;
  if (given.grid.columns == 0) return;
  const std::int32_t place = given.offset + index - given.first;
  token.shift = shift - place;
  token.down = place / given.grid.columns;
  token.across = place % given.grid.columns;
  if (place + 1 == given.grid.rows * given.grid.columns) shift += given.grid.shift();
}

// What the sequences of all rows that verify may say next.
void LanguageModel::draft(const step::StepPlan& plan, step::StepResult& result) {
  const bool is_recurrent = kv_groups_.states.blocks() > 0;
  std::int32_t left = is_recurrent ? std::min(space_.shape.drafts, options_.pass_rows - 1) : std::numeric_limits<std::int32_t>::max();
  for (const step::StepRow& row : plan.rows) {
    const std::int32_t room = std::min(draft_room(row), left);
    left -= is_recurrent ? room : 0;
    const std::size_t blocks = shares_blocks() ? row.block_count : 0;
    drafts_.add(row.slot, static_cast<std::size_t>(room), std::span(plan.blocks).subspan(row.block_begin, blocks));
  }
  drafts_.make(slots_);
  result.draft_failure = drafts_.failure();
  result.draft_work = drafts_.work();
}

// No further than its blocks, its answer and the context reach.
std::int32_t LanguageModel::draft_room(const step::StepRow& row) const {
  const Slot& slot = slots_[row.slot];
  if (row.output != step::RowOutput::kVerify || slot.finished()) return 0;
  const std::int32_t position = next_[row.slot];
  require(position >= row.position && position - row.position <= row.slack, "a row that verifies is not where its slot is");
  const std::int64_t covered = std::int64_t{row.block_count} * kv_groups_.block_tokens();
  const auto end = static_cast<std::int32_t>(std::min<std::int64_t>(covered, context_));
  require(position < end, "too few blocks");
  return std::clamp(std::min(end - position - 1, slot.tokens_left() - 1), 0, row.drafts);
}

// Where the slot really is, and room for what the guesses turn out to be.
void LanguageModel::place_drafts(std::size_t index, step::RowResult& row_result, step::StepResult& result) const {
  const std::span<const DraftSource> sources = drafts_.sources(index);
  row_result.position = next_[row_result.slot];
  row_result.drafted = static_cast<std::int32_t>(sources.size());
  row_result.is_cut = drafts_.is_cut(index);
  row_result.more_begin = static_cast<std::uint32_t>(result.more.size());
  for (const DraftSource source : sources) result.more.push_back({.source = source});
}

// What its slot's next row begins with.
void LanguageModel::settle_row(const step::StepRow& row, step::RowResult& row_result, step::StepResult& result) {
  next_[row.slot] = row_result.position + row.count + static_cast<std::int32_t>(row_result.more_count);
  if (row_result.sampled) remember(row_result, result);
  report_vector(row, row_result, result);
}

// For guesses to come.
void LanguageModel::remember(const step::RowResult& row_result, const step::StepResult& result) {
  if (row_result.finished) return drafts_.end(row_result.slot);
  drafts_.append(row_result.slot, row_result.token);
  for (const step::AnswerToken& more : std::span(result.more).subspan(row_result.more_begin, row_result.more_count))
    drafts_.append(row_result.slot, more.token);
}

// What the row's index-th token is picked for, if at all.
std::optional<std::size_t> LanguageModel::purpose_of(const step::StepRow& row, const step::RowResult& row_result,
                                                     std::int32_t index) const {
  const bool is_last = index + 1 >= row.count;  // drafted ones come after it
  if (row.samples() && is_last) return kSampled;
  if (index < row.scored) return row_result.scored_begin + static_cast<std::size_t>(index);
  if (pools_[row.slot].wants(row.position + index, is_last && row.output == step::RowOutput::kVector))
    return outputs_[row.slot] == PooledOutput::kLastInputs ? kTapped : kPooled;
  return is_heard(row, index) ? std::optional(kHeard) : std::nullopt;
}

void LanguageModel::start_slots(const step::StepPlan& plan) {
  for (const step::SlotStart& start : plan.starts) {
    const std::span<const TokenId> known = std::span(plan.tokens).subspan(start.history_begin, start.history_count);
    drafts_.start(start, known);
    try {
      slots_[start.slot].start(start, known, options_.end_tokens);
    } catch (const std::exception& error) {
      throw step::RowFailure(start.slot, error.what());
    }
    pools_[start.slot].start(start.pooling, model_.embedding, start.pooled_from);
    outputs_[start.slot] = start.pooled_output;
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
  pass_.clear();
  pass_.given_parts = 1 + options_.media_layers;
  picked_.clear();
  pass_rows_.clear();
  kept_ = 0;
}

void LanguageModel::run_pass(step::StepResult& result) {
  compute_pass();
  for (std::size_t begin = 0, end = 0; begin < picked_.size(); begin = end) {
    const auto has_logits = [&](std::size_t index) { return picked_[index].scored < kTapped || picked_[index].scored == kSampled; };
    for (end = begin; end < std::min(picked_.size(), begin + logit_rows_) && has_logits(end);) ++end;
    if (end > begin) {
      use_logits(begin, end, result);
    } else if (picked_[end++].scored != kHeard) {
      pool(begin, result);
    }
  }
  if (heads_ != nullptr) tell_heads(result);
  if (kept_ > 0) replay_drafts(result);
  start_pass();
}

void LanguageModel::compute_pass() {
  if (options_.passes != nullptr) return options_.passes->run(pass_, *decoder_, adapters_);
  Transformer::PassState state = decoder_->transformer.begin(pass_, space_);
  const auto read = [&] {
    read_layer(state.layer);
    if (state.layer + 1 == model_.layers.size()) read_last_inputs();
  };
  read();
  while (decoder_->transformer.advance(pass_, *kv_, space_, state)) {
    read();
    if (between_layers_ != nullptr) (*between_layers_)();
  }
}

Rows LanguageModel::logits_of(std::size_t begin, std::size_t count) {
  if (options_.passes != nullptr) return options_.passes->logits(static_cast<std::int64_t>(begin), static_cast<std::int64_t>(count));
  decoder_->transformer.logits(static_cast<std::int64_t>(begin), static_cast<std::int64_t>(count), space_);
  return space_.logits;
}

// Computes the logits of picked_[begin, end) and what they are for. Those of a row that verifies follow from each other.
void LanguageModel::use_logits(std::size_t begin, std::size_t end, step::StepResult& result) {
  const Rows all = logits_of(begin, end - begin);
  make_tops(begin, end, result);
  claims_.clear();
  for (std::size_t i = begin; i < end; ++i)
    if (i == begin || picked_[i].place == 0) claims_.push_back(i);
  claims_.push_back(end);
  team_.for_chunks(static_cast<std::int64_t>(claims_.size() - 1), 1, [&](std::int64_t from, std::int64_t to, int member) {
    Sampler& sampler = samplers_[static_cast<std::size_t>(member)];
    for (std::size_t i = claims_[static_cast<std::size_t>(from)]; i < claims_[static_cast<std::size_t>(to)]; ++i) {
      const Picked& picked = picked_[i];
      const std::span<const float> logits(all[static_cast<std::int64_t>(i - begin)], static_cast<std::size_t>(model_.vocab));
      if (picked.scored != kSampled) {
        score(sampler, logits, result.scored[picked.scored], result);
      } else if (settled_[picked.row] == 0) {
        sample(sampler, logits, picked, result);
      }
    }
  });
}

// Places for the best tokens beside those that are sampled.
void LanguageModel::make_tops(std::size_t begin, std::size_t end, step::StepResult& result) {
  for (std::size_t i = begin; i < end; ++i) {
    if (picked_[i].scored != kSampled) continue;
    step::RowResult& row = result.rows[picked_[i].row];
    const auto top_begin = static_cast<std::uint32_t>(result.top.size());
    const auto top_count = static_cast<std::uint32_t>(std::clamp(slots_[row.slot].top_logprobs(), 0, kMaxTopLogprobs));
    result.top.resize(result.top.size() + top_count);
    if (picked_[i].place > 0) {
      step::AnswerToken& more = result.more[row.more_begin + static_cast<std::size_t>(picked_[i].place) - 1];
      more.top_begin = top_begin;
      more.top_count = top_count;
    } else {
      row.top_begin = top_begin;
      row.top_count = top_count;
    }
  }
}

void LanguageModel::score(Sampler& sampler, std::span<const float> logits, step::ScoredToken& scored, step::StepResult& result) const {
  const Logprob logprob = sampler.log_probability(logits, scored.token, std::span(result.top).subspan(scored.top_begin, scored.top_count));
  scored.logprob = logprob.value;
  scored.top_count = logprob.top_count;
}

namespace {

// What was sampled, for a row or for one more of its tokens, with its log-probabilities where they are wanted.
template <class Answered>
void report(Sampler& sampler, std::span<const float> logits, const SampledToken& sampled, bool with_logprobs, Answered& answered,
            step::StepResult& result) {
  const std::span<TokenLogprob> top = std::span(result.top).subspan(answered.top_begin, answered.top_count);
  answered.token = sampled.token;
  answered.drawn_logprob = sampled.drawn_logprob;
  answered.top_count = 0;
  if (!with_logprobs) return;
  const Logprob logprob = sampler.log_probability(logits, sampled.token, top);
  answered.logprob = logprob.value;
  answered.top_count = logprob.top_count;
}

}  // namespace

// The row's first token, or one more because what was drafted before it is what was sampled.
void LanguageModel::sample(Sampler& sampler, std::span<const float> logits, const Picked& picked, step::StepResult& result) {
  step::RowResult& row = result.rows[picked.row];
  Slot& slot = slots_[row.slot];
  const TokenId first = row.token;
  std::optional<SampledToken> sampled;
  try {
    sampled = sampler.sample(logits, slot.state(picked.position));
    slot.accept(sampled, row);
    row.ruled_out = !sampled && std::ranges::any_of(logits, [](float logit) { return logit > -std::numeric_limits<float>::infinity(); });
  } catch (...) {  // on a thread of the team, and nobody else's fault
    sampled.reset();
    slot.accept(sampled, row);
    row.failure = std::current_exception();
  }
  settled_[picked.row] = row.finished || sampled->token != picked.guessed ? 1 : 0;
  if (!sampled) {
    row.sampled = false;
    row.top_count = 0;
  } else if (picked.place == 0) {
    report(sampler, logits, *sampled, slot.top_logprobs() >= 0, row, result);
  } else {
    row.token = first;
    report(sampler, logits, *sampled, slot.top_logprobs() >= 0, result.more[row.more_begin + row.more_count++], result);
  }
}

}  // namespace braid::model
