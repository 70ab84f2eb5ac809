// Which blocks hold which tokens: finds the blocks of a prompt's beginning that have been computed before.
#pragma once

#include "cache/block_pool.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace braid::cache {

// 128 bits that stand for the tokens of a block and everything before them.
struct PrefixKey {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  bool operator==(const PrefixKey&) const = default;
};

// XXH3 of xxHash. Not cryptographic, and need not be: see below.
PrefixKey xxh3_key(std::span<const std::byte> message);

// A tree of blocks, each with the block before it as parent; a conversation is a path. Loop only. Of one model: both die together.
//
// Keys are chained: a block's key is the digest of (kind, number of tokens, the parent's key, tokens), a root's of (kind, block size,
// length of the identity, identity, length of the salt, salt). They mean the same in every process. Keys only find candidates. Every hit
// compares the tokens and the parent link, and the salt at the root, so by induction the whole prefix is the same: a collision costs a
// miss, never a wrong block.
//
// A block stays while it is in use or cached in the pool, which tells when it evicts one. With it goes everything below it, so every
// parent link is to a block of the tree. Most times there is nothing below: whoever holds a block holds its parent as well, and releases
// it later (BlockTable), so the block released longest ago is no parent. Only windows let go of beginnings first.
//
// A block that is not full yet is a leaf without a key: match() does not find it, but its beginning can be copied.
class PrefixIndex {
 public:
  using Digest = PrefixKey (*)(std::span<const std::byte>);
  static constexpr BlockId kNoParent = -1;

  // The pool outlives the index and tells it of evictions from now on. `identity` is what contents depend on besides salt and tokens:
  // model, adapter, KV type and layout.
  PrefixIndex(BlockPool& pool, std::int32_t block_tokens, Digest digest = xxh3_key, std::string_view identity = {});
  PrefixIndex(const PrefixIndex&) = delete;
  PrefixIndex& operator=(const PrefixIndex&) = delete;

  // Appends to `path` the blocks that hold the beginning of `tokens`, as many as there are. It takes no references: the caller does,
  // before the pool's next allocation.
  void match(std::string_view salt, std::span<const std::int32_t> tokens, std::vector<BlockId>& path);

  // Called for each full block that is forgotten because the pool evicts it or one above it, while the index still knows it and its
  // parents. What lies below comes later.
  void on_evict(std::function<void(BlockId)> hook) { on_evict_ = std::move(hook); }

  // Appends the keys of all full blocks of `tokens`, whether they are known or not.
  void keys(std::string_view salt, std::span<const std::int32_t> tokens, std::vector<PrefixKey>& keys);

  // Of a block of the tree: its key; and its salt and all tokens from the root to its end, which replace what `tokens` holds.
  const PrefixKey& key(BlockId block) const { return node(block).key; }
  std::string_view path_to(BlockId block, std::vector<std::int32_t>& tokens) const;
  // The key of these tokens after `parent`, a full block of the tree, or after nothing.
  PrefixKey key_after(BlockId parent, std::string_view salt, std::span<const std::int32_t> tokens) {
    return block_key(parent == kNoParent ? root_key(salt) : node(parent).key, tokens);
  }

  // The block whose beginning has the most tokens in common with `tokens`, of those that come after `parent`. Only the newest few are
  // looked at. As with match(), the caller takes a reference.
  struct Beginning {
    BlockId block = kNoParent;
    std::int32_t count = 0;  // tokens in common; 0: there is none
  };
  Beginning common_beginning(BlockId parent, std::string_view salt, std::span<const std::int32_t> tokens) const;

  // `block`, which the caller holds, contains these tokens, less than one block's worth, after those of `parent`. It may be written to
  // behind them, and insert() may follow when it is full. Does nothing when the parent is unknown, or these tokens are known after it.
  void insert_partial(BlockId parent, std::string_view salt, std::span<const std::int32_t> tokens, BlockId block);

  // `block`, which the caller holds, contains these tokens (one block's worth) after those of `parent`, which he holds too. Returns the
  // block that stands for them from now on: `block` itself or, when they are known, the one that match() would have found; that has the
  // same contents, and the caller must continue with it. nullopt when the key is taken by other tokens, or the parent is unknown: the block
  // stays private.
  std::optional<BlockId> insert(BlockId parent, std::string_view salt, std::span<const std::int32_t> tokens, BlockId block);

 private:
  // A block of the tree, and its place among those with the same parent, newest first.
  struct Node {
    PrefixKey key;            // of a full one
    std::int32_t filled = 0;  // tokens; 0: not in the tree
    BlockId parent = kNone;
    BlockId first_child = kNone;
    BlockId newer = kNone;
    BlockId older = kNone;
  };
  static constexpr BlockId kNone = -1;

  PrefixKey root_key(std::string_view salt);
  PrefixKey block_key(const PrefixKey& parent, std::span<const std::int32_t> tokens);
  std::size_t home(const PrefixKey& key) const { return key.low & (slots_.size() - 1); }
  std::size_t find_slot(const PrefixKey& key) const;
  bool holds(BlockId block, BlockId parent, std::string_view salt, std::span<const std::int32_t> tokens) const;
  void prefetch(std::span<const PrefixKey> keys) const;
  bool is_known(BlockId parent) const { return parent == kNoParent || node(parent).filled > 0; }
  BlockId& first_child(BlockId parent, std::string_view salt);
  void add(BlockId block, BlockId parent, std::string_view salt, std::span<const std::int32_t> tokens, const PrefixKey& key);
  void remove(BlockId block);
  void announce_with_all_below(BlockId block) const;
  void remove_with_all_below(BlockId block);
  void vacate(BlockId block);

  Node& node(BlockId block) { return nodes_[static_cast<std::size_t>(block)]; }
  const Node& node(BlockId block) const { return nodes_[static_cast<std::size_t>(block)]; }
  std::span<const std::int32_t> tokens_of(BlockId block) const {
    return std::span(tokens_).subspan(static_cast<std::size_t>(block) * block_tokens_, block_tokens_);
  }

  BlockPool& pool_;
  std::size_t block_tokens_;
  Digest digest_;
  std::string identity_;
  std::function<void(BlockId)> on_evict_;
  std::vector<Node> nodes_;                         // [total]
  std::vector<std::int32_t> tokens_;                // [total, block_tokens]
  std::vector<BlockId> slots_;                      // hash table with linear probing, at most half full; -1: vacant
  std::unordered_map<BlockId, std::string> salts_;  // of blocks without a parent; absent: none
  std::map<std::string, BlockId, std::less<>> first_blocks_;  // by salt: the newest of those without a parent
  std::vector<std::byte> message_;                  // what is being digested
};

}  // namespace braid::cache
