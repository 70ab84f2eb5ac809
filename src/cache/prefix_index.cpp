#include "cache/prefix_index.h"

#include "braid/prefetch.h"

#define XXH_INLINE_ALL
#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstring>
#include <utility>
#include <xxhash.h>

namespace braid::cache {

namespace {

constexpr BlockId kVacant = -1;
constexpr std::size_t kWindow = 64;  // blocks that one round of match() looks for at once

enum class Kind : std::uint32_t { kRoot = 1, kBlock = 2 };

template <class T>
std::byte* put(std::byte* at, const T& value) {
  std::memcpy(at, &value, sizeof value);
  return at + sizeof value;
}

std::byte* put_all(std::byte* at, const auto& values) { return std::ranges::copy(std::as_bytes(std::span(values)), at).out; }

}  // namespace

PrefixKey xxh3_key(std::span<const std::byte> message) {
  const XXH128_hash_t hash = XXH3_128bits(message.data(), message.size());
  return {hash.low64, hash.high64};
}

PrefixIndex::PrefixIndex(BlockPool& pool, std::int32_t block_tokens, Digest digest, std::string_view identity, Groups groups)
    : pool_(pool), block_tokens_(static_cast<std::size_t>(block_tokens)), digest_(digest), identity_(identity),
      nodes_(static_cast<std::size_t>(pool.total())), tokens_(nodes_.size() * block_tokens_), groups_(groups),
      handles_(nodes_.size() * static_cast<std::size_t>(groups.count - 1), kNoHandle), owners_(groups.count > 1 ? nodes_.size() : 0, kNone),
      slots_(std::bit_ceil(nodes_.size() * 2 + 1), kVacant) {
  pool.on_evict([this](BlockId block) {
    if (!lose_handle(block) && !lose_state(block)) forget(block);
  });
}

// With all below it.
void PrefixIndex::forget(BlockId block) {
  if (on_evict_) announce_with_all_below(block);
  remove_with_all_below(block);
}

std::int32_t PrefixIndex::forget_unused() {
  const auto hook = std::exchange(on_evict_, nullptr);
  const std::int32_t count = pool_.empty_cached();
  on_evict_ = hook;
  return count;
}

std::vector<PrefixIndex::Place> PrefixIndex::places() const {
  std::vector<Place> places;
  std::vector<BlockId> newest;  // of those with one parent
  for (const auto& [scope, first] : first_blocks_) newest.push_back(first);
  while (!newest.empty()) {
    BlockId block = newest.back();
    newest.pop_back();
    for (; block != kNone; block = node(block).older) {
      if (is_full(block)) places.push_back({block, kWholeBlock});
      if (const auto found = checkpoints_.find(block); found != checkpoints_.end())
        for (const Checkpoint& checkpoint : found->second) places.push_back({block, checkpoint.offset});
      if (node(block).first_child != kNone) newest.push_back(node(block).first_child);
    }
  }
  return places;
}

BlockId PrefixIndex::attach(BlockId node, std::int32_t group, BlockId block) {
  assert(group > 0 && group < groups_.count);
  if (this->node(node).filled == 0) return block;
  BlockId& known = handles_[handle_place(node, group)];
  if (known != kNoHandle) return known;
  detach(block);
  known = block;
  owners_[static_cast<std::size_t>(block)] = node;
  pool_.keep(block);
  return block;
}

// Of a handle of the node.
std::int32_t PrefixIndex::group_of(BlockId node, BlockId handle) const {
  const auto handles = std::span(handles_).subspan(handle_place(node, 1), static_cast<std::size_t>(groups_.count - 1));
  return 1 + static_cast<std::int32_t>(std::ranges::find(handles, handle) - handles.begin());
}

// From what it was a handle of, if anything.
void PrefixIndex::detach(BlockId block) {
  const BlockId owner = std::exchange(owners_[static_cast<std::size_t>(block)], kNone);
  if (owner != kNone) handles_[handle_place(owner, group_of(owner, block))] = kNoHandle;
}

// False when it is no handle.
bool PrefixIndex::lose_handle(BlockId block) {
  if (owners_.empty() || owners_[static_cast<std::size_t>(block)] == kNone) return false;
  const BlockId owner = owners_[static_cast<std::size_t>(block)];
  if (on_evict_ && is_full(owner)) on_evict_(owner, group_of(owner, block), node(owner).filled);
  detach(block);
  for (std::int32_t group = 1; group < groups_.anchors; ++group)
    if (handle(owner, group) == kNoHandle) return forget(owner), true;
  return true;
}

bool PrefixIndex::has_all_handles(BlockId node) const {
  for (std::int32_t group = 1; group < groups_.count; ++group)
    if (handle(node, group) == kNoHandle) return false;
  return true;
}

PrefixKey PrefixIndex::root_key(const Scope& scope) {
  const std::string_view texts[] = {identity_, scope.adapter, scope.salt};
  std::size_t bytes = 0;
  for (const std::string_view text : texts) bytes += sizeof(std::uint64_t) + text.size();
  message_.resize(sizeof(Kind) + sizeof(std::uint32_t) + bytes);
  std::byte* at = put(message_.data(), Kind::kRoot);
  at = put(at, static_cast<std::uint32_t>(block_tokens_));
  for (const std::string_view text : texts) at = put_all(put(at, static_cast<std::uint64_t>(text.size())), text);
  return digest_(message_);
}

PrefixKey PrefixIndex::block_key(const PrefixKey& parent, const Part& part) {
  message_.resize(sizeof(Kind) + 2 * sizeof(std::uint32_t) + sizeof(PrefixKey) + part.tokens.size_bytes() + part.media.size_bytes());
  std::byte* at = put(message_.data(), Kind::kBlock);
  at = put(at, static_cast<std::uint32_t>(part.tokens.size()));
  at = put(at, static_cast<std::uint32_t>(part.media.size()));
  at = put(at, parent);
  at = put_all(at, part.tokens);
  put_all(at, part.media);
  return digest_(message_);
}

std::span<const MediaSpan> PrefixIndex::media_within(const SequenceView& sequence, std::size_t begin) {
  part_media_.clear();
  const std::size_t end = std::min(begin + block_tokens_, sequence.tokens.size());
  append_media(sequence.media, static_cast<std::int32_t>(begin), static_cast<std::int32_t>(end), part_media_);
  return part_media_;
}

PrefixIndex::Part PrefixIndex::part_of(BlockId block) const {
  Part part{tokens_of(block).first(static_cast<std::size_t>(node(block).filled)), {}};
  if (node(block).media_count > 0) part.media = media_.find(block)->second;
  return part;
}

Scope PrefixIndex::scope_of(BlockId root) const {
  const auto found = scopes_.find(root);
  return found != scopes_.end() ? Scope(found->second) : Scope();
}

// Where the key is, or the vacant slot where it would be.
std::size_t PrefixIndex::find_slot(const PrefixKey& key) const {
  std::size_t slot = home(key);
  while (slots_[slot] != kVacant && node(slots_[slot]).key != key) slot = (slot + 1) & (slots_.size() - 1);
  return slot;
}

bool PrefixIndex::holds(BlockId block, BlockId parent, const Scope& scope, const Part& part) const {
  if (node(block).parent != parent || !std::ranges::equal(tokens_of(block), part.tokens) || !has_media(block, part.media)) return false;
  return parent != kNoParent || scope == scope_of(block);
}

bool PrefixIndex::has_media(BlockId block, std::span<const MediaSpan> media) const {
  if (static_cast<std::size_t>(node(block).media_count) != media.size()) return false;
  return media.empty() || std::ranges::equal(media, part_of(block).media);
}

void PrefixIndex::match(const SequenceView& sequence, std::vector<BlockId>& path) {
  std::array<PrefixKey, kWindow> keys;
  PrefixKey key = root_key(sequence.scope);
  BlockId parent = kNoParent;
  const std::size_t blocks = sequence.tokens.size() / block_tokens_;
  for (std::size_t begin = 0; begin < blocks; begin += kWindow) {
    const std::size_t count = std::min(kWindow, blocks - begin);
    for (std::size_t i = 0; i < count; ++i) keys[i] = key = block_key(key, part(sequence, (begin + i) * block_tokens_));
    prefetch(std::span(keys).first(count));
    for (std::size_t i = 0; i < count; ++i) {
      const BlockId found = slots_[find_slot(keys[i])];
      if (found == kVacant || !holds(found, parent, sequence.scope, part(sequence, (begin + i) * block_tokens_))) return;
      path.push_back(found);
      parent = found;
    }
  }
}

void PrefixIndex::keys(const SequenceView& sequence, std::vector<PrefixKey>& keys) {
  PrefixKey key = root_key(sequence.scope);
  for (std::size_t end = block_tokens_; end <= sequence.tokens.size(); end += block_tokens_)
    keys.push_back(key = block_key(key, part(sequence, end - block_tokens_)));
}

SequenceView PrefixIndex::path_to(BlockId block, Path& reused) const {
  auto& [blocks, tokens, media] = reused;
  blocks.clear();
  for (BlockId at = block; at != kNoParent; at = node(at).parent) blocks.push_back(at);
  tokens.clear();
  media.clear();
  for (auto at = blocks.rbegin(); at != blocks.rend(); ++at) {
    const auto begin = static_cast<std::int32_t>(tokens.size());
    const Part part = part_of(*at);
    tokens.insert(tokens.end(), part.tokens.begin(), part.tokens.end());
    for (const MediaSpan& span : part.media) {
      if (span.first < 0) {
        media.back().count += span.first + span.count;  // the last one goes on
      } else {
        media.push_back({begin + span.first, span.count, span.digest});
      }
    }
  }
  return {scope_of(blocks.back()), tokens, media};
}

// A thousand tokens are some two hundred cache misses, one after another unless they are asked for together.
void PrefixIndex::prefetch(std::span<const PrefixKey> keys) const {
  for (const PrefixKey& key : keys) prefetch_lines(&slots_[home(key)], sizeof(BlockId));
  for (const PrefixKey& key : keys) {
    const BlockId block = slots_[home(key)];
    if (block == kVacant) continue;
    prefetch_lines(&node(block), sizeof(Node));
    prefetch_lines(tokens_of(block).data(), tokens_of(block).size_bytes());
  }
}

PrefixIndex::Beginning PrefixIndex::common_beginning(BlockId parent, const Scope& scope, const Part& part) const {
  BlockId block = kNone;
  if (parent != kNoParent) {
    block = node(parent).first_child;
  } else if (const auto found = first_blocks_.find(scope); found != first_blocks_.end()) {
    block = found->second;
  }
  Beginning best;
  for (int looked_at = 0; block != kNone && looked_at < kSiblings; block = node(block).older, ++looked_at) {
    const Part known = part_of(block);
    const std::int32_t count = common_length({{}, known.tokens, known.media}, {{}, part.tokens, part.media});
    if (count > best.count && has_all_handles(block)) best = {block, count};
  }
  return best;
}

BlockId PrefixIndex::insert_partial(BlockId parent, const SequenceView& sequence, std::size_t begin, BlockId block) {
  const Part filled = part(sequence, begin);
  assert(!filled.tokens.empty() && filled.tokens.size() < block_tokens_ && "only a part of a block");
  std::vector<Checkpoint> checkpoints = take_checkpoints(block);
  remove(block);
  const BlockId node = insert_part(parent, sequence, filled, block);
  if (!checkpoints.empty()) give_checkpoints(node, std::move(checkpoints));
  return node;
}

BlockId PrefixIndex::insert_part(BlockId parent, const SequenceView& sequence, const Part& filled, BlockId block) {
  const auto count = static_cast<std::int32_t>(filled.tokens.size());
  if (!is_known(parent)) return kNoParent;
  if (const Beginning known = common_beginning(parent, sequence.scope, filled); known.count == count) return known.block;
  add(block, parent, sequence.scope, filled, {});
  return block;
}

std::optional<BlockId> PrefixIndex::insert(BlockId parent, const SequenceView& sequence, std::size_t begin, BlockId block) {
  const Part full = part(sequence, begin);
  assert(full.tokens.size() == block_tokens_ && "only full blocks");
  if (is_full(block) && holds(block, parent, sequence.scope, full)) return block;
  std::vector<Checkpoint> checkpoints = take_checkpoints(block);
  remove(block);
  const std::optional<BlockId> node = insert_full(parent, sequence, full, block);
  if (!checkpoints.empty()) give_checkpoints(node.value_or(kNone), std::move(checkpoints));
  return node;
}

std::optional<BlockId> PrefixIndex::insert_full(BlockId parent, const SequenceView& sequence, const Part& full, BlockId block) {
  if (!is_known(parent)) return std::nullopt;
  const PrefixKey key = key_after(parent, sequence.scope, full);
  const std::size_t slot = find_slot(key);
  if (const BlockId known = slots_[slot]; known != kVacant)
    return holds(known, parent, sequence.scope, full) ? std::optional(known) : std::nullopt;
  slots_[slot] = block;
  add(block, parent, sequence.scope, full, key);
  return block;
}

// The place of the newest child's number.
BlockId& PrefixIndex::first_child(BlockId parent, const Scope& scope) {
  if (parent != kNoParent) return node(parent).first_child;
  const auto found = first_blocks_.find(scope);
  if (found != first_blocks_.end()) return found->second;
  return first_blocks_.emplace(OwnScope{std::string(scope.adapter), std::string(scope.salt)}, kNone).first->second;
}

void PrefixIndex::add(BlockId block, BlockId parent, const Scope& scope, const Part& part, const PrefixKey& key) {
  BlockId& first = first_child(parent, scope);
  node(block) = {key,  static_cast<std::int32_t>(part.tokens.size()), static_cast<std::int32_t>(part.media.size()), parent, kNone, kNone,
                 first};
  if (first != kNone) node(first).newer = block;
  first = block;
  std::ranges::copy(part.tokens, tokens_.begin() + block * static_cast<std::ptrdiff_t>(block_tokens_));
  if (!part.media.empty()) media_[block].assign(part.media.begin(), part.media.end());
  if (parent == kNoParent && scope != Scope()) scopes_[block] = {std::string(scope.adapter), std::string(scope.salt)};
  pool_.keep(block);
}

// One block without children, if it is in the tree at all.
void PrefixIndex::remove(BlockId block) {
  Node& removed = node(block);
  if (removed.filled == 0) return;
  assert(removed.first_child == kNone);
  for (const Checkpoint& checkpoint : take_checkpoints(block)) forget_state(checkpoint);
  if (removed.filled == static_cast<std::int32_t>(block_tokens_)) vacate(block);
  if (removed.older != kNone) node(removed.older).newer = removed.newer;
  if (removed.newer != kNone) {
    node(removed.newer).older = removed.older;
  } else {
    const Scope scope = removed.parent == kNoParent ? scope_of(block) : Scope();
    first_child(removed.parent, scope) = removed.older;
    if (removed.parent == kNoParent && removed.older == kNone) first_blocks_.erase(first_blocks_.find(scope));
  }
  if (removed.parent == kNoParent) scopes_.erase(block);
  if (removed.media_count > 0) media_.erase(block);
  for (std::int32_t group = 1; group < groups_.count; ++group) {
    const BlockId handle = std::exchange(handles_[handle_place(block, group)], kNoHandle);
    if (handle == kNoHandle) continue;
    owners_[static_cast<std::size_t>(handle)] = kNone;
    pool_.forget(handle);
  }
  removed.filled = 0;
  pool_.forget(block);
}

void PrefixIndex::announce(BlockId node) const {
  for (std::int32_t group = 0; group < groups_.count; ++group)
    if (handle(node, group) != kNoHandle) on_evict_(node, group, this->node(node).filled);
}

void PrefixIndex::announce_with_all_below(BlockId block) const {
  for (BlockId at = block; at != kNone;) {
    if (is_full(at)) announce(at);
    announce_states(at);
    if (node(at).first_child != kNone) {
      at = node(at).first_child;
      continue;
    }
    while (at != block && node(at).older == kNone) at = node(at).parent;
    at = at != block ? node(at).older : kNone;
  }
}

void PrefixIndex::remove_with_all_below(BlockId block) {
  const BlockId above = node(block).parent;
  while (block != above) {
    while (node(block).first_child != kNone) block = node(block).first_child;
    remove(std::exchange(block, node(block).parent));
  }
}

// Takes the block out of the table and closes the gap: what a probe would no longer reach moves back.
void PrefixIndex::vacate(BlockId block) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t gap = find_slot(node(block).key);
  assert(slots_[gap] == block);
  for (std::size_t next = (gap + 1) & mask; slots_[next] != kVacant; next = (next + 1) & mask) {
    const std::size_t wanted = home(node(slots_[next]).key);
    if (((next - wanted) & mask) < ((next - gap) & mask)) continue;
    slots_[gap] = slots_[next];
    gap = next;
  }
  slots_[gap] = kVacant;
}

}  // namespace braid::cache
