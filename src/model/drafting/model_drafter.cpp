#include "model/drafting/model_drafter.h"

#include "model/drafting/drawing.h"
#include "model/language_model.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace braid::model {
namespace {

// With a chance less than this that all are right, the next guess would hardly ever count.
constexpr double kLeastChance = 0.2;

std::size_t common_prefix(std::span<const TokenId> a, std::span<const TokenId> b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

ModelDrafter::ModelDrafter(std::unique_ptr<LanguageModel> model, std::size_t slots, std::unique_ptr<const TokenMap> map)
    : model_(std::move(model)), map_(std::move(map)), mapped_(map_ != nullptr ? slots : 0), caches_(slots), by_slot_(slots, kNoCache),
      sampling_(slots), guessed_(slots) {
  for (Cache& cache : caches_) cache.blocks.resize(model_->kv_groups().groups.size());
}

ModelDrafter::~ModelDrafter() = default;

std::uint64_t ModelDrafter::block_bytes() const {
  const KvGroups& groups = model_->kv_groups();
  return groups.block_bytes() * groups.groups.size();
}

Result<void> ModelDrafter::allocate_kv(std::int32_t blocks) {
  blocks *= static_cast<std::int32_t>(model_->kv_groups().groups.size());
  free_.resize(static_cast<std::size_t>(blocks));
  std::iota(free_.rbegin(), free_.rend(), 0);
  return model_->allocate_kv(blocks, LanguageModel::Prefault::kInBackground);
}

void ModelDrafter::start(const step::SlotStart& start) {
  end(start.slot);
  guessed_[start.slot] = {};
  sampling_[start.slot] =
      map_ == nullptr ? drawing(start.sampling, model_->shape().vocab) : SamplingParams{.temperature = 0.0F, .top_logprobs = 0};
}

void ModelDrafter::end(step::SlotId slot) {
  const std::size_t cache = std::exchange(by_slot_[slot], kNoCache);
  if (cache != kNoCache) caches_[cache].owner.reset();
}

// The slot's own, or of those without an owner the one that has most in common with its text, or was not used for longest.
ModelDrafter::Cache& ModelDrafter::cache_of(const DraftWish& wish) {
  if (by_slot_[wish.slot] != kNoCache) return caches_[by_slot_[wish.slot]];
  std::size_t best = kNoCache;
  std::size_t most = 0;
  for (std::size_t i = 0; i < caches_.size(); ++i) {
    if (caches_[i].owner) continue;
    const std::size_t common = common_prefix(caches_[i].held, wish.text);
    if (best == kNoCache || common > most || (common == most && caches_[i].used < caches_[best].used)) best = i;
    most = std::max(most, common);
  }
  by_slot_[wish.slot] = best;  // there are as many as slots
  caches_[best].owner = wish.slot;
  return caches_[best];
}

void ModelDrafter::give_up(Cache& cache) {
  for (std::vector<std::int32_t>& blocks : cache.blocks) {
    free_.insert(free_.end(), blocks.begin(), blocks.end());
    blocks.clear();
  }
  cache.held.clear();
}

// False: all that is held belongs to this step.
bool ModelDrafter::take_blocks_of_others() {
  Cache* oldest = nullptr;
  for (Cache& cache : caches_)
    if (cache.used < step_ && !cache.blocks.front().empty() && (oldest == nullptr || cache.used < oldest->used)) oldest = &cache;
  if (oldest == nullptr) return false;
  give_up(*oldest);
  return true;
}

bool ModelDrafter::cover(Cache& cache, std::size_t positions) {
  const auto block = static_cast<std::size_t>(model_->kv_groups().block_tokens());
  const std::size_t places = (positions + block - 1) / block;
  for (std::vector<std::int32_t>& blocks : cache.blocks) {
    while (blocks.size() < places) {
      if (free_.empty() && !take_blocks_of_others()) return false;
      blocks.push_back(free_.back());
      free_.pop_back();
    }
  }
  return true;
}

void ModelDrafter::add_start(step::SlotId slot) {
  plan_.starts.push_back({.slot = slot,
                          .sampling = sampling_[slot],
                          .stop = {.max_tokens = std::numeric_limits<std::int32_t>::max(), .ignore_eos = true, .stop_token_ids = {}}});
}

step::StepRow& ModelDrafter::add_row(step::SlotId slot, const Cache& cache) {
  step::StepRow& row = plan_.rows.emplace_back();
  row.slot = slot;
  row.position = static_cast<std::int32_t>(cache.held.size());
  row.block_begin = static_cast<std::uint32_t>(plan_.blocks.size());
  std::size_t places = cache.blocks.front().size();
  for (const std::vector<std::int32_t>& blocks : cache.blocks) places = std::min(places, blocks.size());
  row.block_count = static_cast<std::uint32_t>(places);
  for (const std::vector<std::int32_t>& blocks : cache.blocks)
    plan_.blocks.insert(plan_.blocks.end(), blocks.begin(), blocks.begin() + static_cast<std::ptrdiff_t>(places));
  return row;
}

// A row with what its cache lacks of the text, within `room`. Whether it is the whole of it, so that a guess follows.
bool ModelDrafter::catch_up(DraftWish& wish, std::int32_t& room) {
  Cache& cache = cache_of(wish);
  cache.used = step_;
  cache.held.resize(std::min(common_prefix(cache.held, wish.text), wish.text.size() - 1));
  const std::size_t missing = wish.text.size() - cache.held.size();
  const std::size_t count = std::min(missing, static_cast<std::size_t>(room));
  const std::span<const TokenId> tokens = wish.text.subspan(cache.held.size(), count);
  const auto is_unknown = [this](TokenId token) { return token >= model_->shape().vocab; };
  if (count == 0 || std::ranges::any_of(tokens, is_unknown) || !cover(cache, wish.text.size() + wish.guesses.size())) return false;
  room -= static_cast<std::int32_t>(count);
  add_start(wish.slot);
  step::StepRow& row = add_row(wish.slot, cache);
  row.count = static_cast<std::int32_t>(count);
  row.token_begin = static_cast<std::uint32_t>(plan_.tokens.size());
  row.output = count == missing ? step::RowOutput::kSample : step::RowOutput::kNone;
  plan_.tokens.insert(plan_.tokens.end(), tokens.begin(), tokens.end());
  cache.held.insert(cache.held.end(), tokens.begin(), tokens.end());
  going_.push_back({&wish, &cache});
  return true;
}

void ModelDrafter::compute() {
  model_->compute(plan_, result_);
  if (!result_.failure) return;
  for (const Going& going : going_) give_up(*going.cache);
  std::rethrow_exception(result_.failure);
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
    const bool reaches_end = static_cast<std::int32_t>(going.cache->held.size()) + 1 >= model_->context_length();
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
    if (!text.empty()) own_wishes_.push_back({wish.slot, text, mapped.guesses, 0});
  }
  draft_own(own_wishes_);
  for (const DraftWish& own : own_wishes_) {
    DraftWish& wish = *std::ranges::find(wishes, own.slot, &DraftWish::slot);
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
    for (const Going& going : going_) {
      step::StepRow& row = add_row(going.wish->slot, *going.cache);
      row.input = step::RowInput::kSampled;
      row.output = step::RowOutput::kSample;
      going.cache->held.push_back(going.wish->guesses[going.wish->count - 1]);
    }
    compute();
  }
}

}  // namespace braid::model
