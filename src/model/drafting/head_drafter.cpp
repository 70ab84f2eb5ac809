#include "model/drafting/head_drafter.h"

#include "model/drafting/drawing.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace braid::model {

WorkspaceShape HeadDrafter::workspace_shape(int members) { return {.rows = kPassRows, .logit_rows = 16, .members = members}; }

Result<HeadDrafter::Parts> HeadDrafter::make_parts(const HeadModel& head, const HeadRoom& room) {
  auto space = Workspace::create(head.shape, head.weights, room.table, workspace_shape(room.team.size()), room.pages);
  if (!space) return space.error();
  const KvGroups groups = head.shape.kv_groups(room.block_tokens, room.table.kv_type);
  const std::int32_t places = kPositions / room.block_tokens;
  auto kv = KvArena::create(groups, static_cast<std::int32_t>(kCaches) * places * groups.count(), room.pages);
  if (!kv) return kv.error();
  return Parts{std::move(*space), std::move(*kv)};
}

std::size_t HeadDrafter::bytes(const HeadModel& head, const kernels::KernelTable& table, int members, std::int32_t block_tokens) {
  const KvGroups groups = head.shape.kv_groups(block_tokens, table.kv_type);
  return Workspace::bytes(head.shape, head.weights, table, workspace_shape(members)) +
         kCaches * static_cast<std::size_t>(kPositions / block_tokens * groups.count()) * groups.block_bytes();
}

HeadDrafter::HeadDrafter(HeadModel head, const HeadRoom& room, Parts parts)
    : head_(std::move(head)), table_(room.table), ropes_(rope_tables(head_.shape, head_.weights.rope_divisors, {}, kPositions)),
      transformer_(head_.shape, head_.weights, ropes_, table_, room.team), products_(table_, room.team), space_(std::move(parts.space)),
      kv_(std::move(parts.kv)), sampler_(table_, head_.shape.vocab, kPositions), caches_(kCaches), by_slot_(room.slots, kNoCache),
      sampling_(room.slots) {
  pass_.blocks.resize(static_cast<std::size_t>(kv_.blocks()));
  std::iota(pass_.blocks.begin(), pass_.blocks.end(), 0);
}

void HeadDrafter::start(const step::SlotStart& start) {
  end(start.slot);
  const DraftMethod method = start.speculation.method;
  if (method != DraftMethod::kAuto && method != head_.method) return;
  sampling_[start.slot] = drawing(start.sampling, head_.shape.vocab);
  if (!head_.tokens.empty()) sampling_[start.slot].logit_bias.clear();  // it is of other tokens
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
    cache.heard.erase(cache.heard.begin(), cache.heard.begin() + kLost * head_.heard_width);
    cache.first += cache.held + kLost;
    cache.held = 0;
  }
  cache.heard.insert(cache.heard.end(), hidden.begin(), hidden.end());
}

void HeadDrafter::begin_pass() {
  pass_.tokens.clear();
  pass_.picked.clear();
  pass_.given.clear();
  inputs_.clear();
}

void HeadDrafter::add(std::size_t cache, std::int32_t index, TokenId token, const float* hidden) {
  const auto tables = static_cast<std::uint32_t>(pass_.blocks.size() / kCaches);
  inputs_.push_back({token, hidden});
  pass_.tokens.push_back({.token = token,
                          .position = index,
                          .tables = static_cast<std::uint32_t>(cache) * tables,
                          .table_size = static_cast<std::uint32_t>(kPositions / kv_.groups().block_tokens()),
                          .given = static_cast<std::int32_t>(pass_.tokens.size())});
}

// What it has heard of the wish's text, if that is all of it, knows it and it fits into `room` rows.
void HeadDrafter::read(DraftWish& wish, std::int32_t& room) {
  const std::size_t index = by_slot_[wish.slot];
  if (index == kNoCache) return;
  Cache& cache = caches_[index];
  cache.used = ++uses_;
  const std::int32_t count = heard(cache);
  const std::int32_t begin = cache.first + cache.held;
  if (count == 0 || count > room || std::cmp_not_equal(begin + count + 1, wish.text.size())) return;
  const std::span<const TokenId> came = wish.text.last(static_cast<std::size_t>(count));
  if (!std::ranges::all_of(came, [this](TokenId token) { return embeds(token); })) return;
  if (cache.held + count + static_cast<std::int32_t>(wish.guesses.size()) > kPositions) {
    cache.first = begin;
    cache.held = 0;
  }
  for (std::int32_t i = 0; i < count; ++i)
    add(index, cache.held + i, came[static_cast<std::size_t>(i)], cache.heard.data() + i * head_.heard_width);
  pass_.picked.push_back(static_cast<std::int32_t>(pass_.tokens.size()) - 1);
  cache.held += count;
  wish.read = static_cast<std::size_t>(count);
  room -= count;
  going_.push_back({&wish, index, std::vector<float>(static_cast<std::size_t>(head_.shape.embedding))});
}

void HeadDrafter::compute(bool are_heard) {
  make_rows(inputs_, are_heard, pass_.given);
  transformer_.forward(pass_, kv_, space_);
  if (are_heard)
    for (const Going& going : going_) caches_[going.cache].heard.clear();
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
    const std::span<const float> logits(space_.logits[static_cast<std::int64_t>(i % at_once)], static_cast<std::size_t>(head_.shape.vocab));
    const auto sampled =
        sampler_.sample(logits, {.params = sampling_[wish.slot], .position = static_cast<std::int64_t>(wish.text.size() + wish.count)});
    if (!sampled) continue;
    const TokenId token = head_.tokens.empty() ? sampled->token : head_.tokens[static_cast<std::size_t>(sampled->token)];
    wish.guesses[wish.count++] = token;
    if (wish.count == wish.guesses.size() || !embeds(token)) continue;
    read_hidden(static_cast<std::int64_t>(i), going.hidden.data());
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
  for (bool are_heard = true; !going_.empty(); are_heard = false) {
    compute(are_heard);
    take_guesses();
    begin_pass();
    for (const Going& going : going_) {
      const auto count = static_cast<std::int32_t>(going.wish->count);
      pass_.picked.push_back(static_cast<std::int32_t>(pass_.tokens.size()));
      add(going.cache, caches_[going.cache].held + count - 1, going.wish->guesses[going.wish->count - 1], going.hidden.data());
    }
  }
}

}  // namespace braid::model
