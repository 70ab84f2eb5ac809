#include "model/drafting/head_drafter.h"

#include "model/drafting/drawing.h"
#include "model/norm.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace braid::model {
namespace {

// A model of one layer, whose rows are given.
ModelShape only_head(const ModelShape& model) {
  ModelShape shape = model;
  shape.layers = {model.prediction->layer};
  shape.output.norm = model.prediction->norm;
  shape.input.norm = {};
  shape.input.positions.clear();
  shape.kv_limit = 0;
  shape.prediction.reset();
  return shape;
}

Weights weights_of_head(const Weights& model) {
  Weights weights;
  weights.embedding = model.embedding;
  weights.output = model.output;
  weights.output_bias = model.output_bias;
  weights.output_norm = model.prediction.norm;
  weights.layers = {model.prediction.layer};
  weights.prediction.join = model.prediction.join;
  return weights;
}

WorkspaceShape workspace_of_head(std::int32_t rows, int members) { return {.rows = rows, .logit_rows = 16, .members = members}; }

}  // namespace

Result<std::unique_ptr<HeadDrafter>> HeadDrafter::create(const ModelShape& model, const Weights& weights, const kernels::KernelTable& table,
                                                         kernels::ThreadTeam& team, std::size_t slots, std::int32_t block_tokens,
                                                         files::HugePages pages) {
  const ModelShape shape = only_head(model);
  auto space = Workspace::create(shape, weights_of_head(weights), table, workspace_of_head(kPassRows, team.size()), pages);
  if (!space) return space.error();
  const KvGroups groups = shape.kv_groups(block_tokens, table.kv_type);
  const std::int32_t places = kPositions / block_tokens;
  auto kv = KvArena::create(groups, static_cast<std::int32_t>(kCaches) * places * groups.count(), pages);
  if (!kv) return kv.error();
  return std::unique_ptr<HeadDrafter>(new HeadDrafter(model, weights, table, team, slots, std::move(*space), std::move(*kv)));
}

std::size_t HeadDrafter::bytes(const ModelShape& model, const Weights& weights, const kernels::KernelTable& table, int members,
                               std::int32_t block_tokens) {
  const ModelShape shape = only_head(model);
  const KvGroups groups = shape.kv_groups(block_tokens, table.kv_type);
  return Workspace::bytes(shape, weights_of_head(weights), table, workspace_of_head(kPassRows, members)) +
         kCaches * static_cast<std::size_t>(kPositions / block_tokens * groups.count()) * groups.block_bytes();
}

HeadDrafter::HeadDrafter(const ModelShape& model, const Weights& weights, const kernels::KernelTable& table, kernels::ThreadTeam& team,
                         std::size_t slots, Workspace space, KvArena kv)
    : shape_(only_head(model)), prediction_(*model.prediction), own_(weights.prediction), weights_(weights_of_head(weights)), table_(table),
      ropes_(rope_tables(shape_, weights.rope_divisors, kPositions)), transformer_(shape_, weights_, ropes_, table, team),
      products_(table, team), space_(std::move(space)), kv_(std::move(kv)), sampler_(table, shape_.vocab, kPositions), caches_(kCaches),
      by_slot_(slots, kNoCache), sampling_(slots) {
  joined_.reserve(static_cast<std::size_t>(kPassRows) * 2 * static_cast<std::size_t>(shape_.embedding));
  pass_.blocks.resize(static_cast<std::size_t>(kv_.blocks()));
  std::iota(pass_.blocks.begin(), pass_.blocks.end(), 0);
}

void HeadDrafter::start(const step::SlotStart& start) {
  end(start.slot);
  const DraftMethod method = start.speculation.method;
  if (method != DraftMethod::kAuto && method != DraftMethod::kMtp) return;
  sampling_[start.slot] = drawing(start.sampling, shape_.vocab);
  const auto cache = std::ranges::min_element(caches_, {}, [](const Cache& one) { return one.owner ? one.used : 0; });
  if (cache->owner) by_slot_[*cache->owner] = kNoCache;
  by_slot_[start.slot] = static_cast<std::size_t>(cache - caches_.begin());
  *cache = {};
  cache->owner = start.slot;
  cache->used = ++uses_;
}

void HeadDrafter::end(step::SlotId slot) {
  if (const std::size_t cache = std::exchange(by_slot_[slot], kNoCache); cache != kNoCache) caches_[cache].owner.reset();
}

void HeadDrafter::hear(step::SlotId slot, std::int32_t position, std::span<const float> hidden) {
  Cache& cache = caches_[by_slot_[slot]];
  const std::int32_t count = heard(cache);
  if (position != cache.first + cache.held + count) {
    cache.heard.clear();
    cache.first = position;
    cache.held = 0;
  } else if (count == kMostHeard) {  // nobody wants guesses: what comes last is of most use
    constexpr std::int32_t kLost = kMostHeard / 2;
    cache.heard.erase(cache.heard.begin(), cache.heard.begin() + kLost * shape_.embedding);
    cache.first += cache.held + kLost;
    cache.held = 0;
  }
  cache.heard.insert(cache.heard.end(), hidden.begin(), hidden.end());
}

void HeadDrafter::begin_pass() {
  pass_.tokens.clear();
  pass_.picked.clear();
  pass_.given.clear();
  joined_.clear();
}

void HeadDrafter::add(std::size_t cache, std::int32_t index, TokenId token, std::span<const float> hidden) {
  const auto width = static_cast<std::size_t>(shape_.embedding);
  const auto tables = static_cast<std::uint32_t>(pass_.blocks.size() / kCaches);
  joined_.resize(joined_.size() + 2 * width);
  float* const embedded = joined_.data() + joined_.size() - 2 * width;
  table_.unpack_row(weights_.embedding, token, embedded);
  for (std::size_t i = 0; i < width; ++i) embedded[i] *= shape_.input.scale;
  normalise(table_, prediction_.token_norm, own_.token_norm, embedded, embedded);
  normalise(table_, prediction_.hidden_norm, own_.hidden_norm, hidden.data(), embedded + width);
  pass_.tokens.push_back({.token = token,
                          .position = index,
                          .tables = static_cast<std::uint32_t>(cache) * tables,
                          .table_size = static_cast<std::uint32_t>(kPositions / kv_.groups().block_tokens()),
                          .given = static_cast<std::int32_t>(pass_.tokens.size())});
}

// What it has heard of the wish's text, if that is all of it and fits into `room` rows.
bool HeadDrafter::read(DraftWish& wish, std::int32_t& room) {
  const std::size_t index = by_slot_[wish.slot];
  if (index == kNoCache) return false;
  Cache& cache = caches_[index];
  cache.used = ++uses_;
  const std::int32_t count = heard(cache);
  const std::int32_t begin = cache.first + cache.held;
  if (count == 0 || count > room || std::cmp_not_equal(begin + count + 1, wish.text.size())) return false;
  if (cache.held + count + static_cast<std::int32_t>(wish.guesses.size()) > kPositions) {
    cache.first = begin;
    cache.held = 0;
  }
  const auto width = static_cast<std::size_t>(shape_.embedding);
  for (std::int32_t i = 0; i < count; ++i)
    add(index, cache.held + i, wish.text[static_cast<std::size_t>(begin + i + 1)],
        std::span(cache.heard).subspan(static_cast<std::size_t>(i) * width, width));
  pass_.picked.push_back(static_cast<std::int32_t>(pass_.tokens.size()) - 1);
  cache.held += count;
  cache.heard.clear();
  wish.read = static_cast<std::size_t>(count);
  room -= count;
  going_.push_back({&wish, index, std::vector<float>(width)});
  return true;
}

void HeadDrafter::compute() {
  const auto rows = static_cast<std::int64_t>(pass_.tokens.size());
  const Product join{&own_.join.matrix, space_.residual};
  products_.run({&join, 1}, rows, space_, [&](std::int64_t row, float*) { return joined_.data() + row * 2 * shape_.embedding; });
  products_.add_bias(own_.join, space_.residual, rows);
  for (std::int64_t row = 0; row < rows; ++row)
    pass_.given.insert(pass_.given.end(), space_.residual[row], space_.residual[row] + shape_.embedding);
  transformer_.forward(pass_, kv_, space_);
}

// Of all that go on; those that are to go on further stay.
void HeadDrafter::take_guesses() {
  std::size_t kept = 0;
  const auto at_once = static_cast<std::size_t>(space_.shape.logit_rows);
  for (std::size_t i = 0; i < going_.size(); ++i) {
    if (i % at_once == 0)
      transformer_.logits(static_cast<std::int64_t>(i), static_cast<std::int64_t>(std::min(at_once, going_.size() - i)), space_);
    Going& going = going_[i];
    DraftWish& wish = *going.wish;
    const std::span<const float> logits(space_.logits[static_cast<std::int64_t>(i % at_once)], static_cast<std::size_t>(shape_.vocab));
    const auto sampled =
        sampler_.sample(logits, {.params = sampling_[wish.slot], .position = static_cast<std::int64_t>(wish.text.size() + wish.count)});
    if (!sampled) continue;
    wish.guesses[wish.count++] = sampled->token;
    if (wish.count == wish.guesses.size()) continue;
    transformer_.hidden(static_cast<std::int64_t>(i), space_, going.hidden.data());
    if (kept != i) std::swap(going_[kept], going);
    ++kept;
  }
  going_.resize(kept);
}

void HeadDrafter::draft(std::span<DraftWish> wishes) {
  going_.clear();
  begin_pass();
  std::int32_t room = kPassRows;
  for (DraftWish& wish : wishes) read(wish, room);
  for (; !going_.empty();) {
    compute();
    take_guesses();
    begin_pass();
    for (const Going& going : going_) {
      const auto count = static_cast<std::int32_t>(going.wish->count);
      pass_.picked.push_back(static_cast<std::int32_t>(pass_.tokens.size()));
      add(going.cache, caches_[going.cache].held + count - 1, going.wish->guesses[going.wish->count - 1], going.hidden);
    }
  }
}

}  // namespace braid::model
