#include "sched/fake_model.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <set>
#include <stdexcept>
#include <utility>

namespace braid::sched::test {

FakeModel::FakeModel(const FakeModelOptions& options)
    : options_(options), cache_(static_cast<std::size_t>(options.blocks) * static_cast<std::size_t>(options.block_tokens), -1) {}

void FakeModel::hold() {
  const std::lock_guard lock(mutex_);
  held_ = true;
  allowed_ = 0;
}

void FakeModel::allow(int steps) {
  const std::lock_guard lock(mutex_);
  allowed_ += steps;
  gate_.notify_all();
}

void FakeModel::release() {
  const std::lock_guard lock(mutex_);
  held_ = false;
  gate_.notify_all();
}

void FakeModel::fail_next(std::string message) {
  const std::lock_guard lock(mutex_);
  failure_ = std::move(message);
}

void FakeModel::poison(TokenId token, bool names_row) {
  names_row_ = names_row;
  poison_ = token;
}

std::vector<StepRecord> FakeModel::steps() const {
  const std::lock_guard lock(mutex_);
  return steps_;
}

std::vector<std::string> FakeModel::violations() const {
  const std::lock_guard lock(mutex_);
  return violations_;
}

void FakeModel::violation(std::string what) {
  const std::lock_guard lock(mutex_);
  violations_.push_back(std::move(what));
}

void FakeModel::wait_for_gate() {
  std::unique_lock lock(mutex_);
  gate_.wait(lock, [this] { return !held_ || allowed_ > 0; });
  if (held_) --allowed_;
  if (!failure_.empty()) throw std::runtime_error(std::exchange(failure_, {}));
}

void FakeModel::execute(const step::StepPlan& plan, step::StepResult& result) {
  try {
    wait_for_gate();
  } catch (...) {
    for (const step::StepRow& row : plan.rows) slots_[row.slot].finished = true;
    throw;
  }
  check_blocks(plan);
  copy_blocks(plan, result);
  for (const step::SlotStart& start : plan.starts) slots_[start.slot] = {start.stop, start.generated, -1, -1, false, start.pooling};
  StepRecord record;
  record.rows = plan.rows;
  for (const step::StepRow& row : plan.rows) {
    (row.from_sampler() ? record.decode_rows : record.prefill_tokens) += row.count;
    step::RowResult& row_result = result.rows.emplace_back();
    row_result.slot = row.slot;
    run_row(plan, row, row_result, result);
  }
  if (poison_ >= 0) fail_if_poisoned(plan, result);
  record.seconds =
      options_.step_seconds + record.decode_rows * options_.decode_row_seconds + record.prefill_tokens * options_.prefill_token_seconds;
  result.seconds = record.seconds;
  const std::lock_guard lock(mutex_);
  steps_.push_back(std::move(record));
}

namespace {

std::int32_t end_of(const step::StepRow& row) { return row.position + row.count; }

// Positions that a row has written.
struct Written {
  std::int32_t begin = 0;
  std::int32_t end = 0;
};
Written written_by(const step::StepRow& row, const step::RowResult& result) {
  if (row.output != step::RowOutput::kVerify) return {row.position, end_of(row)};
  if (!result.ran) return {};
  return {result.position, result.position + 1 + result.drafted};
}

}  // namespace

void FakeModel::fail_if_poisoned(const step::StepPlan& plan, const step::StepResult& result) {
  for (std::size_t i = 0; i < plan.rows.size(); ++i) {
    const step::StepRow& row = plan.rows[i];
    if (slots_[row.slot].finished || std::ranges::count(read(plan, row, written_by(row, result.rows[i]).end), poison_.load()) == 0)
      continue;
    for (std::size_t j = 0; j < plan.rows.size(); ++j) {
      const step::StepRow& other = plan.rows[j];
      const auto [begin, end] = written_by(other, result.rows[j]);
      for (std::int32_t position = begin; position < end; ++position) put(plan, other, position, -7);
      put_state(plan, other.state_begin, -7);
      for (std::uint32_t n = 0; n < other.snapshot_count; ++n) put_state(plan, plan.snapshots[other.snapshot_begin + n].block_begin, -7);
      slots_[other.slot].finished = true;
    }
    if (names_row_) throw step::RowFailure(row.slot, "poisoned");
    throw std::runtime_error("poisoned");
  }
}

void FakeModel::copy_blocks(const step::StepPlan& plan, step::StepResult& result) {
  const auto bytes = static_cast<std::size_t>(options_.block_tokens) * sizeof(TokenId);
  const auto block = [&](std::int32_t index) { return cache_.data() + static_cast<std::ptrdiff_t>(index) * options_.block_tokens; };
  for (const step::BlockCopy& save : plan.saves) {
    std::memcpy(save.bytes, block(save.block), bytes);
    if (spoils_saves_) save.bytes[0] ^= std::byte{1};
  }
  for (std::size_t i = 0; i < plan.checks.size(); ++i)
    if (spoils_checks_ || std::memcmp(block(plan.checks[i].block), block(plan.checks[i].other), bytes) != 0)
      result.unequal.push_back(static_cast<std::uint32_t>(i));
  for (const step::BlockFork& fork : plan.forks) {
    if (fork.from == fork.to) violation("a block copied to itself");
    std::memcpy(block(fork.to), block(fork.from), bytes);
  }
  for (const step::BlockCopy& load : plan.loads) std::memcpy(block(load.block), load.bytes, bytes);
  for (const std::int32_t given : plan.given_back) std::memset(block(given), 0, bytes);
}

// A block that a row writes to belongs to no other row of the step, not even to one that turns out finished: its blocks are not free
// before it is back.
void FakeModel::check_blocks(const step::StepPlan& plan) {
  if (plan.rows.empty() && !plan.moves_blocks()) violation("an empty step");
  std::map<std::int32_t, int> named;
  std::vector<std::int32_t> written;
  std::set<step::SlotId> slots;
  for (const step::StepRow& row : plan.rows) {
    if (!slots.insert(row.slot).second) violation("two rows for a slot");
    for (std::size_t group = 0; group < options_.groups.size(); ++group) {
      const auto invisible = options_.groups[group].invisible(row.position, options_.block_tokens);
      for (std::uint32_t i = 0; i < row.block_count; ++i) {
        const std::int32_t block = plan.blocks[row.block_begin + group * row.block_count + i];
        if (static_cast<std::int32_t>(i) >= invisible.first && static_cast<std::int32_t>(i) < invisible.last) {
          if (block != -1) violation("a block that no token sees any more");
          continue;
        }
        if (block < 0 || block >= options_.blocks) violation("a block outside the arena");
        ++named[block];
        if (static_cast<std::int32_t>(i) >= row.position / options_.block_tokens) written.push_back(block);
      }
    }
    const auto name_state = [&](std::uint32_t begin) {
      for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(options_.state_blocks); ++i) {
        const std::int32_t block = plan.blocks.at(begin + i);
        if (block < 0 || block >= options_.blocks) violation("a state outside the arena");
        ++named[block];
        written.push_back(block);
      }
    };
    name_state(row.state_begin);
    for (std::uint32_t i = 0; i < row.snapshot_count; ++i) name_state(plan.snapshots.at(row.snapshot_begin + i).block_begin);
    const auto blocks_for = [&](std::int32_t positions) { return (positions + options_.block_tokens - 1) / options_.block_tokens; };
    const auto blocks = static_cast<std::int32_t>(row.block_count);
    const std::int32_t most = row.position + row.slack + row.count + row.drafts;
    if (blocks > blocks_for(most) || blocks < blocks_for(row.output == step::RowOutput::kVerify ? row.position + 1 : most))
      violation("a row's blocks do not cover its positions");
    if (row.output != step::RowOutput::kVerify && (row.slack != 0 || row.drafts != 0)) violation("drafts of a row that verifies nothing");
  }
  for (const std::int32_t block : written)
    if (named[block] > 1) violation("block " + std::to_string(block) + " is written by one row and named by another");
}

// The log-probability of a token is its position, negated; the n-th best token is n.
void FakeModel::score(const step::StepPlan& plan, const step::StepRow& row, step::RowResult& result, step::StepResult& step) {
  if (row.scored > row.count - (row.output != step::RowOutput::kNone ? 1 : 0)) violation("more scored tokens than logits");
  result.scored_begin = static_cast<std::uint32_t>(step.scored.size());
  result.scored_count = static_cast<std::uint32_t>(row.scored);
  for (std::int32_t i = 0; i < row.scored; ++i) {
    const auto top_begin = static_cast<std::uint32_t>(step.top.size());
    const TokenId token = plan.tokens.at(row.token_begin + 1 + static_cast<std::uint32_t>(i));
    step.scored.push_back({token, -static_cast<float>(row.position + i + 1), top_begin, static_cast<std::uint32_t>(row.scored_top)});
    for (std::int32_t n = 0; n < row.scored_top; ++n) step.top.push_back({n, 0.0F});
  }
}

void FakeModel::run_row(const step::StepPlan& plan, const step::StepRow& row, step::RowResult& result, step::StepResult& step) {
  Slot& slot = slots_[row.slot];
  if (row.from_sampler() && slot.finished) return;
  result.ran = true;
  if (row.output == step::RowOutput::kVerify) return verify(plan, row, slot, result, step);
  write(plan, row, slot);
  score(plan, row, result, step);
  if (slot.pooling != Pooling::kNone) pool(plan, row, slot, result, step);
  if (!row.samples()) return;
  std::vector<TokenId> context = read(plan, row, end_of(row));
  if (options_.state_blocks > 0) context.push_back(state(plan, row.state_begin, 0));
  if (choking_ >= 0 && std::ranges::count(context, choking_.load()) > 0) {
    slot.finished = result.finished = true;
    result.failure = std::make_exception_ptr(std::runtime_error("choked"));
    return;
  }
  result.token = next_token(context);
  answer(slot, result.token, result);
}

void FakeModel::answer(Slot& slot, TokenId token, step::RowResult& result) const {
  ++slot.generated;
  slot.last = token;
  slot.finished = ends(token, slot.generated, slot.stop, result.reason);
  result.sampled = true;
  result.finished = slot.finished;
}

// Drafts as far as the row's blocks reach and the answer goes on. How many of them hold follows from what the sequence sees; those that do
// not leave rubbish behind.
void FakeModel::verify(const step::StepPlan& plan, const step::StepRow& row, Slot& slot, step::RowResult& result, step::StepResult& step) {
  if (slot.last < 0 || slot.next < row.position || slot.next > row.position + row.slack)
    return violation("a row that verifies is not where its sequence is");
  const std::int32_t base = slot.next;
  const std::int32_t covered = static_cast<std::int32_t>(row.block_count) * options_.block_tokens;
  if (base >= covered) return violation("a row's blocks do not reach its first token");
  result.position = base;
  result.drafted = std::min({row.drafts, covered - base - 1, slot.stop.max_tokens - slot.generated - 1});
  result.more_begin = static_cast<std::uint32_t>(step.more.size());
  step.more.resize(step.more.size() + static_cast<std::size_t>(std::max(result.drafted, 0)));
  const auto right =
      static_cast<std::int32_t>(static_cast<std::uint32_t>(slot.last * 31 + base) % static_cast<std::uint32_t>(result.drafted + 1));
  const bool has_state = options_.state_blocks > 0;
  TokenId carried = has_state ? take_state(plan, row) : 0;
  for (std::int32_t i = 0; i <= right && !slot.finished; ++i) {
    put(plan, row, base + i, Tint::adapted(slot.last, row));
    std::vector<TokenId> context = read(plan, row, base + i + 1);
    if (has_state) {
      carried = advance(carried, place(plan, row, 0, base + i));
      context.push_back(carried);
      put_state(plan, row.state_begin, carried);
    }
    if (choking_ >= 0 && std::ranges::count(context, choking_.load()) > 0) {
      slot.finished = result.finished = true;
      result.sampled = false;
      result.failure = std::make_exception_ptr(std::runtime_error("choked"));
      return;
    }
    const TokenId token = next_token(context);
    if (i == 0) {
      result.token = token;
    } else {
      step.more[result.more_begin + result.more_count++].token = token;
    }
    answer(slot, token, result);
    slot.next = base + i + 1;
  }
  for (std::int32_t position = slot.next; position <= base + result.drafted; ++position) put(plan, row, position, -9);
  for (std::uint32_t i = 0; i < row.snapshot_count; ++i) {
    if (plan.snapshots[row.snapshot_begin + i].end != step::kBehindRow) violation("a snapshot that a row that verifies may not come by");
    put_state(plan, plan.snapshots[row.snapshot_begin + i].block_begin, carried);
  }
}

namespace {

std::vector<float> vector_of(const std::vector<TokenId>& pooled) {
  std::int64_t sum = 0;
  for (const TokenId token : pooled) sum += token;
  return {static_cast<float>(sum), static_cast<float>(pooled.size())};
}

}  // namespace

void FakeModel::pool(const step::StepPlan& plan, const step::StepRow& row, Slot& slot, step::RowResult& result, step::StepResult& step) {
  const bool gives = row.output == step::RowOutput::kVector;
  for (std::int32_t position = row.position; position < row.position + row.count; ++position) {
    const bool takes_all = slot.pooling == Pooling::kMean || slot.pooling == Pooling::kEach;
    if (!slot.finished && takes_all && std::cmp_not_equal(slot.pooled.size(), position)) violation("a mean without all its positions");
    const bool is_last = gives && position + 1 == row.position + row.count;
    if (takes_all || (slot.pooling == Pooling::kFirst && position == 0) || (slot.pooling == Pooling::kLast && is_last))
      slot.pooled.push_back(held(plan, row, position - row.position));
  }
  if (!gives) return;
  const std::vector<float> values = vector_of(slot.pooled);
  result.vector_begin = static_cast<std::uint32_t>(step.vectors.size());
  result.vector_count = static_cast<std::uint32_t>(values.size());
  step.vectors.insert(step.vectors.end(), values.begin(), values.end());
}

std::vector<float> FakeModel::expected_vector(const std::vector<TokenId>& prompt, Pooling pooling, const Tint& tint) {
  std::vector<TokenId> pooled;
  for (std::size_t i = 0; i < prompt.size(); ++i)
    if (pooling == Pooling::kMean || pooling == Pooling::kEach || (pooling == Pooling::kFirst ? i == 0 : i + 1 == prompt.size()))
      pooled.push_back(tint.at(static_cast<std::int32_t>(i), prompt[i]));
  return vector_of(pooled);
}

// What the cache is to hold of one of the row's tokens.
TokenId FakeModel::held(const step::StepPlan& plan, const step::StepRow& row, std::int32_t index) {
  TokenId held = plan.tokens.at(row.token_begin + static_cast<std::uint32_t>(index));
  for (std::uint32_t i = 0; i < row.given_count; ++i) {
    const step::GivenVectors& given = plan.given.at(row.given_begin + i);
    if (index >= given.first && index < given.first + given.count)
      held = static_cast<TokenId>(given.vectors->at(static_cast<std::size_t>(given.begin + index - given.first)));
  }
  return Tint::adapted(held, row);
}

void FakeModel::write(const step::StepPlan& plan, const step::StepRow& row, Slot& slot) {
  if (row.from_sampler() && slot.last < 0) violation("a decode row of a slot that has sampled nothing");
  for (std::int32_t i = 0; i < row.count; ++i) {
    const std::int32_t position = row.position + i;
    put(plan, row, position, row.from_sampler() ? Tint::adapted(slot.last, row) : held(plan, row, i));
  }
  slot.next = row.position + row.count;
  if (options_.state_blocks > 0) carry_state(plan, row);
}

TokenId FakeModel::advance(TokenId state, TokenId token) {
  return static_cast<TokenId>((static_cast<std::uint32_t>(state) * 16777619U ^ static_cast<std::uint32_t>(token)) >> 1);
}

TokenId& FakeModel::state(const step::StepPlan& plan, std::uint32_t block_begin, std::int32_t part) {
  return cache_[static_cast<std::size_t>(plan.blocks.at(block_begin + static_cast<std::uint32_t>(part)) * options_.block_tokens)];
}

// Each of its blocks has a part of its own.
void FakeModel::put_state(const step::StepPlan& plan, std::uint32_t block_begin, TokenId value) {
  for (std::int32_t part = 0; part < options_.state_blocks; ++part) state(plan, block_begin, part) = value ^ part;
}

TokenId FakeModel::take_state(const step::StepPlan& plan, const step::StepRow& row) {
  if (row.position == 0) return 1;
  const TokenId value = state(plan, row.state_begin, 0);
  for (std::int32_t part = 1; part < options_.state_blocks; ++part)
    if (state(plan, row.state_begin, part) != (value ^ part)) return -8;  // parts of different states: the answer will be wrong
  return value;
}

// Over the tokens that the row has just written, with copies on the way.
void FakeModel::carry_state(const step::StepPlan& plan, const step::StepRow& row) {
  TokenId value = take_state(plan, row);
  std::uint32_t next = row.snapshot_begin;
  const std::uint32_t end = row.snapshot_begin + row.snapshot_count;
  for (std::int32_t position = row.position; position < end_of(row); ++position) {
    value = advance(value, place(plan, row, 0, position));
    if (next < end && plan.snapshots[next].end == position + 1) put_state(plan, plan.snapshots[next++].block_begin, value);
  }
  if (next != end) violation("a snapshot where the row does not come by");
  put_state(plan, row.state_begin, value);
}

TokenId& FakeModel::place(const step::StepPlan& plan, const step::StepRow& row, std::int32_t group, std::int32_t position) {
  const std::int32_t index = group * static_cast<std::int32_t>(row.block_count) + position / options_.block_tokens;
  const std::int32_t block = plan.blocks[row.block_begin + static_cast<std::uint32_t>(index)];
  return cache_[static_cast<std::size_t>(block * options_.block_tokens + position % options_.block_tokens)];
}

void FakeModel::put(const step::StepPlan& plan, const step::StepRow& row, std::int32_t position, TokenId token) {
  for (std::int32_t group = 0; group < groups(); ++group) place(plan, row, group, position) = token;
}

// What the token before position `end` sees, in one group after the other.
std::vector<TokenId> FakeModel::read(const step::StepPlan& plan, const step::StepRow& row, std::int32_t end) {
  std::vector<TokenId> context;
  for (std::int32_t group = 0; group < groups(); ++group)
    for (std::int32_t position = 0; position < end; ++position)
      if (sees(group, end - 1, position)) context.push_back(place(plan, row, group, position));
  return context;
}

bool FakeModel::sees(std::int32_t group, std::int32_t from, std::int32_t position) const {
  const auto [window, sink] = options_.groups[static_cast<std::size_t>(group)];
  return window == 0 || position > from - window || position < sink;
}

TokenId FakeModel::next_token(const std::vector<TokenId>& context) const {
  std::uint64_t hash = 1469598103934665603ULL;  // FNV-1a
  for (const TokenId token : context) hash = (hash ^ static_cast<std::uint32_t>(token)) * 1099511628211ULL;
  return static_cast<TokenId>((hash >> 20) % static_cast<std::uint64_t>(options_.vocab));
}

bool FakeModel::ends(TokenId token, std::int32_t generated, const StopRules& stop, FinishReason& reason) const {
  const bool is_stop = (token == options_.eos && !stop.ignore_eos) || std::ranges::count(stop.stop_token_ids, token) > 0;
  reason = is_stop && generated > stop.min_tokens ? FinishReason::kStop : FinishReason::kLength;
  return reason == FinishReason::kStop || generated == stop.max_tokens;
}

std::vector<TokenId> FakeModel::expected(const std::vector<TokenId>& prompt, const StopRules& stop, const Tint& own) const {
  std::vector<TokenId> context = prompt;
  FinishReason reason = FinishReason::kStop;
  do {
    std::vector<TokenId> visible;
    const auto last = static_cast<std::int32_t>(context.size()) - 1;
    Tint tint = own;
    if (options_.stretch_beyond > 0 && last >= options_.stretch_beyond) tint.adapter += Tint::kStretched;
    for (std::int32_t group = 0; group < groups(); ++group)
      for (std::int32_t position = 0; position <= last; ++position)
        if (sees(group, last, position)) visible.push_back(tint.at(position, context[static_cast<std::size_t>(position)]));
    TokenId state = 1;
    for (std::int32_t position = 0; position <= last; ++position)
      state = advance(state, tint.at(position, context[static_cast<std::size_t>(position)]));
    if (options_.state_blocks > 0) visible.push_back(state);
    context.push_back(next_token(visible));
  } while (!ends(context.back(), static_cast<std::int32_t>(context.size() - prompt.size()), stop, reason));
  context.erase(context.begin(), context.begin() + static_cast<std::ptrdiff_t>(prompt.size()));
  return context;
}

}  // namespace braid::sched::test
