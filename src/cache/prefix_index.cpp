#include "cache/prefix_index.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstring>
#include <utility>

namespace braid::cache {

namespace {

constexpr BlockId kVacant = -1;
constexpr std::size_t kWindow = 64;  // blocks that one round of match() looks for at once
constexpr int kSiblings = 16;        // blocks that common_beginning() looks at

enum class Kind : std::uint32_t { kRoot = 1, kBlock = 2 };

template <class T>
std::byte* put(std::byte* at, const T& value) {
  std::memcpy(at, &value, sizeof value);
  return at + sizeof value;
}

}  // namespace

PrefixKey xxh3_key(std::span<const std::byte> message) {
  const XXH128_hash_t hash = XXH3_128bits(message.data(), message.size());
  return {hash.low64, hash.high64};
}

PrefixIndex::PrefixIndex(BlockPool& pool, std::int32_t block_tokens, Digest digest, std::string_view identity)
    : pool_(pool),
      block_tokens_(static_cast<std::size_t>(block_tokens)),
      digest_(digest),
      identity_(identity),
      nodes_(static_cast<std::size_t>(pool.total())),
      tokens_(nodes_.size() * block_tokens_),
      slots_(std::bit_ceil(nodes_.size() * 2 + 1), kVacant) {
  pool.on_evict([this](BlockId block) {
    if (on_evict_) announce_with_all_below(block);
    remove_with_all_below(block);
  });
}

PrefixKey PrefixIndex::root_key(std::string_view salt) {
  message_.resize(sizeof(Kind) + sizeof(std::uint32_t) + 2 * sizeof(std::uint64_t) + identity_.size() + salt.size());
  std::byte* at = put(message_.data(), Kind::kRoot);
  at = put(at, static_cast<std::uint32_t>(block_tokens_));
  at = put(at, static_cast<std::uint64_t>(identity_.size()));
  at = std::ranges::copy(std::as_bytes(std::span(identity_)), at).out;
  at = put(at, static_cast<std::uint64_t>(salt.size()));
  std::ranges::copy(std::as_bytes(std::span(salt)), at);
  return digest_(message_);
}

PrefixKey PrefixIndex::block_key(const PrefixKey& parent, std::span<const std::int32_t> tokens) {
  message_.resize(sizeof(Kind) + sizeof(std::uint32_t) + sizeof(PrefixKey) + tokens.size_bytes());
  std::byte* at = put(message_.data(), Kind::kBlock);
  at = put(at, static_cast<std::uint32_t>(tokens.size()));
  at = put(at, parent);
  std::ranges::copy(std::as_bytes(tokens), at);
  return digest_(message_);
}

// Where the key is, or the vacant slot where it would be.
std::size_t PrefixIndex::find_slot(const PrefixKey& key) const {
  std::size_t slot = home(key);
  while (slots_[slot] != kVacant && node(slots_[slot]).key != key) slot = (slot + 1) & (slots_.size() - 1);
  return slot;
}

bool PrefixIndex::holds(BlockId block, BlockId parent, std::string_view salt, std::span<const std::int32_t> tokens) const {
  if (node(block).parent != parent || !std::ranges::equal(tokens_of(block), tokens)) return false;
  if (parent != kNoParent) return true;
  const auto found = salts_.find(block);
  return salt == (found != salts_.end() ? std::string_view(found->second) : std::string_view());
}

void PrefixIndex::match(std::string_view salt, std::span<const std::int32_t> tokens, std::vector<BlockId>& path) {
  std::array<PrefixKey, kWindow> keys;
  PrefixKey key = root_key(salt);
  BlockId parent = kNoParent;
  while (tokens.size() >= block_tokens_) {
    const std::size_t count = std::min(kWindow, tokens.size() / block_tokens_);
    for (std::size_t i = 0; i < count; ++i) keys[i] = key = block_key(key, tokens.subspan(i * block_tokens_, block_tokens_));
    prefetch(std::span(keys).first(count));
    for (std::size_t i = 0; i < count; ++i) {
      const BlockId found = slots_[find_slot(keys[i])];
      if (found == kVacant || !holds(found, parent, salt, tokens.subspan(i * block_tokens_, block_tokens_))) return;
      path.push_back(found);
      parent = found;
    }
    tokens = tokens.subspan(count * block_tokens_);
  }
}

void PrefixIndex::keys(std::string_view salt, std::span<const std::int32_t> tokens, std::vector<PrefixKey>& keys) {
  PrefixKey key = root_key(salt);
  for (; tokens.size() >= block_tokens_; tokens = tokens.subspan(block_tokens_))
    keys.push_back(key = block_key(key, tokens.first(block_tokens_)));
}

std::string_view PrefixIndex::path_to(BlockId block, std::vector<std::int32_t>& tokens) const {
  std::size_t length = 0;
  for (BlockId at = block; at != kNoParent; at = node(at).parent) ++length;
  tokens.resize(length * block_tokens_);
  BlockId root = block;
  for (BlockId at = block; at != kNoParent; at = node(at).parent) {
    --length;
    std::ranges::copy(tokens_of(at), tokens.begin() + static_cast<std::ptrdiff_t>(length * block_tokens_));
    root = at;
  }
  const auto found = salts_.find(root);
  return found != salts_.end() ? std::string_view(found->second) : std::string_view();
}

// A thousand tokens are some two hundred cache misses, one after another unless they are asked for together.
void PrefixIndex::prefetch(std::span<const PrefixKey> keys) const {
  for (const PrefixKey& key : keys) __builtin_prefetch(&slots_[home(key)]);
  for (const PrefixKey& key : keys) {
    const BlockId block = slots_[home(key)];
    if (block == kVacant) continue;
    __builtin_prefetch(&node(block));
    __builtin_prefetch(tokens_of(block).data());
  }
}

PrefixIndex::Beginning PrefixIndex::common_beginning(BlockId parent, std::string_view salt, std::span<const std::int32_t> tokens) const {
  BlockId block = kNone;
  if (parent != kNoParent) {
    block = node(parent).first_child;
  } else if (const auto found = first_blocks_.find(salt); found != first_blocks_.end()) {
    block = found->second;
  }
  Beginning best;
  for (int looked_at = 0; block != kNone && looked_at < kSiblings; block = node(block).older, ++looked_at) {
    const auto known = tokens_of(block).first(static_cast<std::size_t>(node(block).filled));
    const auto count = static_cast<std::int32_t>(std::ranges::mismatch(known, tokens).in1 - known.begin());
    if (count > best.count) best = {block, count};
  }
  return best;
}

void PrefixIndex::insert_partial(BlockId parent, std::string_view salt, std::span<const std::int32_t> tokens, BlockId block) {
  assert(!tokens.empty() && tokens.size() < block_tokens_ && "only a part of a block");
  remove(block);
  if (!is_known(parent) || common_beginning(parent, salt, tokens).count == static_cast<std::int32_t>(tokens.size())) return;
  add(block, parent, salt, tokens, {});
}

std::optional<BlockId> PrefixIndex::insert(BlockId parent, std::string_view salt, std::span<const std::int32_t> tokens, BlockId block) {
  assert(tokens.size() == block_tokens_ && "only full blocks");
  remove(block);
  if (!is_known(parent)) return std::nullopt;
  const PrefixKey key = key_after(parent, salt, tokens);
  const std::size_t slot = find_slot(key);
  if (const BlockId known = slots_[slot]; known != kVacant)
    return holds(known, parent, salt, tokens) ? std::optional(known) : std::nullopt;
  slots_[slot] = block;
  add(block, parent, salt, tokens, key);
  return block;
}

// The place of the newest child's number.
BlockId& PrefixIndex::first_child(BlockId parent, std::string_view salt) {
  if (parent != kNoParent) return node(parent).first_child;
  const auto found = first_blocks_.find(salt);
  return found != first_blocks_.end() ? found->second : first_blocks_.emplace(salt, kNone).first->second;
}

void PrefixIndex::add(BlockId block, BlockId parent, std::string_view salt, std::span<const std::int32_t> tokens, const PrefixKey& key) {
  BlockId& first = first_child(parent, salt);
  node(block) = {key, static_cast<std::int32_t>(tokens.size()), parent, kNone, kNone, first};
  if (first != kNone) node(first).newer = block;
  first = block;
  std::ranges::copy(tokens, tokens_.begin() + block * static_cast<std::ptrdiff_t>(block_tokens_));
  if (parent == kNoParent && !salt.empty()) salts_.emplace(block, salt);
  pool_.keep(block);
}

// One block without children, if it is in the tree at all.
void PrefixIndex::remove(BlockId block) {
  Node& removed = node(block);
  if (removed.filled == 0) return;
  assert(removed.first_child == kNone);
  if (removed.filled == static_cast<std::int32_t>(block_tokens_)) vacate(block);
  if (removed.older != kNone) node(removed.older).newer = removed.newer;
  if (removed.newer != kNone) {
    node(removed.newer).older = removed.older;
  } else {
    const auto salt = salts_.find(block);
    const std::string_view its_salt = salt != salts_.end() ? std::string_view(salt->second) : std::string_view();
    first_child(removed.parent, its_salt) = removed.older;
    if (removed.parent == kNoParent && removed.older == kNone) first_blocks_.erase(first_blocks_.find(its_salt));
  }
  salts_.erase(block);
  removed.filled = 0;
  pool_.forget(block);
}

void PrefixIndex::announce_with_all_below(BlockId block) const {
  for (BlockId at = block; at != kNone;) {
    if (node(at).filled == static_cast<std::int32_t>(block_tokens_)) on_evict_(at);
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
