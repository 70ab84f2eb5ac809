#include "model/drafting/model_drafter.h"

#include "model/drafting/drawing.h"
#include "model/language_model.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

namespace braid::model {
namespace {

// With a chance less than this that all are right, the next guess would hardly ever count.
constexpr double kLeastChance = 0.2;

}  // namespace

ModelDrafter::ModelDrafter(std::unique_ptr<LanguageModel> model, std::size_t slots, std::unique_ptr<const TokenMap> map)
    : model_(std::move(model)), map_(std::move(map)), mapped_(map_ != nullptr ? slots : 0), groups_(model_->kv_groups().count()),
      held_(0, model_->kv_groups().block_tokens()), caches_(slots), sampling_(slots), guessed_(slots) {}

ModelDrafter::~ModelDrafter() = default;

std::uint64_t ModelDrafter::block_bytes() const {
  const KvGroups& groups = model_->kv_groups();
  return groups.block_bytes() * groups.groups.size();
}

Result<void> ModelDrafter::allocate_kv(std::int32_t blocks, std::int32_t most) {
  most = std::max(blocks, most);
  held_ = HeldTokens(most, model_->kv_groups().block_tokens());
  caches_.allocate(blocks);
  written_.assign(static_cast<std::size_t>(most), 0);
  return model_->allocate_kv(blocks * groups_, LanguageModel::Prefault::kInBackground, most * groups_);
}

void ModelDrafter::start(const step::SlotStart& start) {
  end(start.slot);
  guessed_[start.slot] = {};
  sampling_[start.slot] =
      map_ == nullptr ? drawing(start.sampling, model_->shape().vocab) : SamplingParams{.temperature = 0.0F, .top_logprobs = 0};
}

void ModelDrafter::end(step::SlotId slot) { caches_.end(slot); }

// That cover text and guesses; empty: it has none.
std::span<const std::int32_t> ModelDrafter::blocks_for(const DraftWish& wish) {
  const std::size_t positions = wish.text.size() + wish.guesses.size();
  const std::int32_t width = model_->kv_groups().block_tokens();
  if (map_ != nullptr || wish.blocks.empty()) return caches_.reach(wish.slot, wish.text, positions, held_, width, step_);
  const std::size_t places = (positions + static_cast<std::size_t>(width) - 1) / static_cast<std::size_t>(width);
  const auto in_pool = [this](std::int32_t block) { return block >= 0 && block < held_.blocks(); };
  return places <= wish.blocks.size() && std::ranges::all_of(wish.blocks.first(places), in_pool) ? wish.blocks.first(places)
                                                                                                 : std::span<const std::int32_t>();
}

// Whether somebody with the same beginning writes, in this step, to one of these blocks from position `begin` on; else they are written to from now on.
bool ModelDrafter::is_written(std::span<const std::int32_t> blocks, std::size_t begin) {
  const std::span<const std::int32_t> wanted = blocks.subspan(begin / static_cast<std::size_t>(model_->kv_groups().block_tokens()));
  const auto writer = [this](std::int32_t block) -> std::uint64_t& { return written_[static_cast<std::size_t>(block)]; };
  if (std::ranges::any_of(wanted, [&](std::int32_t block) { return writer(block) == step_; })) return true;
  for (const std::int32_t block : wanted) writer(block) = step_;
  return false;
}

void ModelDrafter::add_start(step::SlotId slot) {
  plan_.starts.push_back({.slot = slot,
                          .sampling = sampling_[slot],
                          .stop = {.max_tokens = std::numeric_limits<std::int32_t>::max(), .ignore_eos = true, .stop_token_ids = {}}});
}

// Of `count` tokens behind those that are held.
step::StepRow& ModelDrafter::add_row(Going& going, std::size_t count) {
  step::StepRow& row = plan_.rows.emplace_back();
  row.slot = going.wish->slot;
  row.position = static_cast<std::int32_t>(going.held);
  row.count = static_cast<std::int32_t>(count);
  row.block_begin = static_cast<std::uint32_t>(plan_.blocks.size());
  row.block_count = static_cast<std::uint32_t>(going.blocks.size());
  for (std::int32_t group = 0; group < groups_; ++group)
    for (const std::int32_t block : going.blocks) plan_.blocks.push_back(place(block, group));
  held_.cut(going.blocks, going.held, going.held + count);
  going.held += count;
  return row;
}

// A row with what is lacking of the text, within `room`. When that is all of it, a guess follows.
void ModelDrafter::catch_up(DraftWish& wish, std::int32_t& room) {
  const std::span<const std::int32_t> blocks = blocks_for(wish);
  const std::size_t held = std::min(held_.common(wish.text, blocks), wish.text.size() - 1);
  const std::size_t missing = wish.text.size() - held;
  const std::size_t count = std::min(missing, static_cast<std::size_t>(room));
  const std::span<const TokenId> tokens = wish.text.subspan(held, count);
  const auto is_unknown = [this](TokenId token) { return token >= model_->shape().vocab; };
  if (blocks.empty() || count == 0 || std::ranges::any_of(tokens, is_unknown) || is_written(blocks, held)) return;
  room -= static_cast<std::int32_t>(count);
  wish.read = count;
  add_start(wish.slot);
  step::StepRow& row = add_row(going_.emplace_back(Going{&wish, blocks, held}), count);
  row.token_begin = static_cast<std::uint32_t>(plan_.tokens.size());
  row.output = count == missing ? step::RowOutput::kSample : step::RowOutput::kNone;
  plan_.tokens.insert(plan_.tokens.end(), tokens.begin(), tokens.end());
}

// Who goes on holds what the pass has computed.
void ModelDrafter::compute() {
  model_->compute(plan_, result_);
  if (result_.failure) std::rethrow_exception(result_.failure);
  for (std::size_t i = 0; i < going_.size(); ++i) {
    const step::StepRow& row = plan_.rows[i];
    const DraftWish& wish = *going_[i].wish;
    const auto tokens = row.from_sampler()
                            ? std::span<const TokenId>(wish.guesses).subspan(wish.count - 1, 1)
                            : std::span<const TokenId>(plan_.tokens).subspan(row.token_begin, static_cast<std::size_t>(row.count));
    held_.put(going_[i].blocks, static_cast<std::size_t>(row.position), tokens);
  }
}

// Of all rows that sampled; those that are to go on stay. The first guess is always made: so it is seen whether such ones are right.
void ModelDrafter::take_guesses() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < going_.size(); ++i) {
    const step::RowResult& row = result_.rows[i];
    Going& going = going_[i];
    DraftWish& wish = *going.wish;
    going.chance *= confidence_.chance(row.logprob);
    if (!row.sampled || (wish.count > 0 && going.chance < kLeastChance)) continue;
    wish.guesses[wish.count++] = row.token;
    guessed_[wish.slot].tokens.push_back(row.token);
    guessed_[wish.slot].logprobs.push_back(row.logprob);
    const bool reaches_end = static_cast<std::int32_t>(going.held) + 1 >= model_->context_length();
    if (wish.count < wish.guesses.size() && !reaches_end) going_[kept++] = going;
  }
  going_.resize(kept);
}

// What came in the places of the last guesses; behind a wrong one it says nothing.
void ModelDrafter::learn(const DraftWish& wish) {
  Guessed& guessed = guessed_[wish.slot];
  for (std::size_t i = 0; i < guessed.tokens.size() && guessed.begin + i < wish.text.size(); ++i) {
    const bool is_right = wish.text[guessed.begin + i] == guessed.tokens[i];
    confidence_.observe(guessed.logprobs[i], is_right);
    if (!is_right) break;
  }
  guessed.begin = wish.text.size();
  guessed.tokens.clear();
  guessed.logprobs.clear();
}

void ModelDrafter::draft(std::span<DraftWish> wishes) { map_ == nullptr ? draft_own(wishes) : draft_mapped(wishes); }

void ModelDrafter::draft_mapped(std::span<DraftWish> wishes) {
  own_wishes_.clear();
  for (const DraftWish& wish : wishes) {
    Mapped& mapped = mapped_[wish.slot];
    mapped.guesses.resize(wish.guesses.size());
    const std::span<const TokenId> text = mapped.text.map(wish.text, *map_);
    if (!text.empty()) own_wishes_.push_back({.slot = wish.slot, .text = text, .guesses = mapped.guesses, .blocks = {}});
  }
  draft_own(own_wishes_);
  for (const DraftWish& own : own_wishes_) {
    DraftWish& wish = *std::ranges::find(wishes, own.slot, &DraftWish::slot);
    wish.read = own.read;
    mapped_guesses_.clear();
    map_->to_large(own.guesses.first(own.count), mapped_guesses_);
    wish.count = std::min(mapped_guesses_.size(), wish.guesses.size());
    std::copy_n(mapped_guesses_.begin(), wish.count, wish.guesses.begin());
  }
}

void ModelDrafter::draft_own(std::span<DraftWish> wishes) {
  ++step_;
  going_.clear();
  plan_.clear();
  std::int32_t room = kCatchUp;
  const auto most = static_cast<std::size_t>(model_->context_length());
  for (DraftWish& wish : wishes) {
    learn(wish);
    if (wish.text.size() < most) catch_up(wish, room);
  }
  if (going_.empty()) return;
  compute();
  for (take_guesses(); !going_.empty(); take_guesses()) {
    plan_.clear();
    for (Going& going : going_) {
      step::StepRow& row = add_row(going, 1);
      row.input = step::RowInput::kSampled;
      row.output = step::RowOutput::kSample;
    }
    compute();
  }
}

std::size_t ModelDrafter::saved_bytes() const {
  return map_ != nullptr ? 0 : held_.record_bytes() + static_cast<std::size_t>(block_bytes());
}

// Of each group, where they lie one after the other.
void ModelDrafter::add_copies(std::int32_t block, std::span<std::byte> bytes, std::vector<step::BlockCopy>& copies) const {
  const std::size_t size = model_->kv_groups().block_bytes();
  for (std::int32_t group = 0; group < groups_; ++group)
    copies.push_back(
        {.block = place(block, group), .bytes = bytes.data() + static_cast<std::size_t>(group) * size, .group = group, .part = 0});
}

// What a block holds goes the way of its bytes, in the same order. In a buffer it lies before them.
void ModelDrafter::add_moves(const step::StepPlan& plan, std::size_t block_bytes) {
  const std::size_t head = held_.record_bytes();
  const auto tail_of = [&](const step::BlockCopy& copy) { return std::span(copy.bytes + block_bytes, saved_bytes()); };
  for (const step::BlockCopy& save : plan.saves) {
    if (save.group != 0 || held_.count(save.block) == 0) continue;
    held_.write(save.block, tail_of(save));
    add_copies(save.block, tail_of(save).subspan(head), plan_.saves);
  }
  for (const step::BlockFork& fork : plan.forks) {
    held_.copy(fork.from, fork.to);
    if (held_.count(fork.from) == 0) continue;
    for (std::int32_t group = 0; group < groups_; ++group) plan_.forks.push_back({place(fork.from, group), place(fork.to, group)});
  }
  for (const step::BlockCopy& load : plan.loads) {
    if (load.group != 0) continue;
    held_.read(load.block, tail_of(load));
    if (held_.count(load.block) > 0) add_copies(load.block, tail_of(load).subspan(head), plan_.loads);
  }
  for (const std::int32_t block : plan.given_back) {
    held_.clear(block);
    for (std::int32_t group = 0; group < groups_; ++group) plan_.given_back.push_back(place(block, group));
  }
}

void ModelDrafter::give_up() {
  model_->give_back_kv();
  has_given_up_.store(true, std::memory_order_release);
}

void ModelDrafter::move(const step::StepPlan& plan, std::size_t block_bytes) {
  if (map_ != nullptr) return;
  plan_.clear();
  add_moves(plan, block_bytes);
  if (!plan_.moves_blocks() && plan_.forks.empty()) return;
  model_->compute(plan_, result_);
  if (!result_.failure) return;
  held_ = HeldTokens(held_.blocks(), model_->kv_groups().block_tokens());  // nobody knows what is where
  for (const step::BlockCopy& save : plan.saves)
    if (save.group == 0) std::memset(save.bytes + block_bytes, 0, held_.record_bytes());
  std::rethrow_exception(result_.failure);
}

}  // namespace braid::model
