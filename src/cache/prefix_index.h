// Which blocks hold which tokens: finds the blocks of a prompt's beginning that have been computed before.
#pragma once

#include "cache/block_pool.h"
#include "cache/sequence_view.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
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
// Keys are chained: a block's key is the digest of (kind, number of tokens, number of media, the parent's key, tokens, media), a root's of
// (kind, block size, length and text of identity, adapter and salt). They mean the same in every process. Keys only find candidates.
// Every hit compares tokens, media and the parent link, and the scope at the root, so by induction the whole prefix is the same: a
// collision costs a miss, never a wrong block.
//
// A block stays while it is in use or cached in the pool, which tells when it evicts one. With it goes everything below it, so every
// parent link is to a block of the tree. Most times there is nothing below: whoever holds a block holds its parent as well, and releases
// it later (BlockTable), so the block released longest ago is no parent. Only windows let go of beginnings first.
//
// Where layers fall into groups, the blocks of the first group are the nodes of the tree, and each has for every other group a handle, which
// may be absent: the block of the same positions. The first `anchors` groups see everything, so a node without one of theirs is of no use
// to anybody and goes, with all below it; a handle of the others is lost alone, and may be attached again.
//
// Recurrent layers have no blocks of positions but a state, and one can go on only where there is one. So checkpoints of states hang at
// (node, offset). A state may take several blocks of the pool, is evicted like other blocks and alone, and goes with its node. All of them
// together take so many blocks at most (bound_states). One within a block is found by its key, that of the tokens before it in the block,
// however many other blocks begin with them.
//
// A block that is not full yet is a leaf without a key: match() does not find it, but its beginning can be copied.
class PrefixIndex {
 public:
  using Digest = PrefixKey (*)(std::span<const std::byte>);
  static constexpr BlockId kNoParent = -1;
  static constexpr BlockId kNoHandle = -1;

  struct Groups {
    std::int32_t count = 1;
    std::int32_t anchors = 1;  // at least 1
  };

  // The pool outlives the index and tells it of evictions from now on. `identity` is what contents depend on besides the sequence: model, KV
  // type and layout.
  PrefixIndex(BlockPool& pool, std::int32_t block_tokens, Digest digest = xxh3_key, std::string_view identity = {})
      : PrefixIndex(pool, block_tokens, digest, identity, {}) {}
  PrefixIndex(BlockPool& pool, std::int32_t block_tokens, Digest digest, std::string_view identity, Groups groups);
  PrefixIndex(const PrefixIndex&) = delete;
  PrefixIndex& operator=(const PrefixIndex&) = delete;

  // Appends to `path` the blocks that hold the beginning of `sequence`, as many as there are. It takes no references: the caller does,
  // before the pool's next allocation.
  void match(const SequenceView& sequence, std::vector<BlockId>& path);

  // The block of `group` with the positions of the block `node` of the tree; kNoHandle: it has none, or is not in the tree.
  BlockId handle(BlockId node, std::int32_t group) const {
    if (this->node(node).filled == 0) return kNoHandle;
    return group == 0 ? node : handles_[handle_place(node, group)];
  }
  bool has_all_handles(BlockId node) const;
  // `block`, which the caller holds, has these positions' contents of `group`, which is not the first. Returns the block that stands for
  // them from now on: that of the node, if it has one. Of a block that is not in the tree: `block`, and nothing changes.
  BlockId attach(BlockId node, std::int32_t group, BlockId block);

  // `state`, blocks which the caller holds, is the state after the first `offset` tokens of the block `node`. False, and nothing changes,
  // when that is not in the tree, has not so many tokens, or has a state there, or states may not take so many blocks.
  bool put_state(BlockId node, std::int32_t offset, std::span<const BlockId> state);
  // The longest beginning of `sequence` at whose end there is a state; `path` is what match() found of it, or less. As with match(), the
  // caller takes references; the blocks are named until the index changes. Whoever uses the state uses `node`, with which it would go.
  struct StateHit {
    std::int32_t tokens = 0;  // 0: there is none
    std::span<const BlockId> state;
    BlockId node = kNoParent;  // which it hangs at: holds the last of these tokens, and maybe others behind them
  };
  StateHit last_state(const SequenceView& sequence, std::span<const BlockId> path) { return look_for_state(sequence, path, true); }
  // The same of one that is not used yet, so where states may take no more memory it goes before those that are.
  StateHit unused_state(const SequenceView& sequence, std::span<const BlockId> path) { return look_for_state(sequence, path, false); }
  // That after the first `offset` tokens of the node; empty: there is none.
  std::span<const BlockId> state_at(BlockId node, std::int32_t offset) const;
  // Whether a checkpoint's state lies in this block, among others.
  bool is_of_state(BlockId block) const { return state_nodes_.contains(block); }

  // Called for what is forgotten because the pool evicts that or something above it, while the index still knows it and its parents: for
  // each group that has a block of a full block's positions, and for each state (kState), then with the tokens of the node that it is after.
  // What lies below comes later.
  static constexpr std::int32_t kState = -1;
  void on_evict(std::function<void(BlockId node, std::int32_t group, std::int32_t offset)> hook) { on_evict_ = std::move(hook); }

  // Blocks of the pool that checkpoints of states take. From bound_states() on these are at most so many: the state that was put or found
  // longest ago goes, as if the pool had taken it.
  std::int32_t state_blocks() const { return static_cast<std::int32_t>(state_nodes_.size()); }
  void bound_states(std::int32_t blocks);
  // States that have gone for this.
  std::uint64_t states_dropped() const { return states_dropped_; }

  // Forgets what nobody holds, without telling anybody. Returns how many of the pool's blocks that were.
  std::int32_t forget_unused();

  // Appends the keys of all full blocks of `sequence`, whether they are known or not.
  void keys(const SequenceView& sequence, std::vector<PrefixKey>& keys);
  // One of these keys after the other: of the block at `begin`, from that of the block before it, which does not count at 0.
  PrefixKey next_key(const PrefixKey& before, const SequenceView& sequence, std::size_t begin) {
    return block_key(begin == 0 ? root_key(sequence.scope) : before, part(sequence, begin));
  }

  // All that can be found, each block after that before it: full blocks, and checkpoints of states after the first `offset` tokens of a node.
  struct Place {
    BlockId node = kNoParent;
    std::int32_t offset = kWholeBlock;
  };
  static constexpr std::int32_t kWholeBlock = 0;
  std::vector<Place> places() const;

  // Of a block of the tree: its key; and all that is from the root to its end, which replaces what `reused` holds and lies there.
  struct Path {
    std::vector<BlockId> blocks;  // from its end
    std::vector<std::int32_t> tokens;
    std::vector<MediaSpan> media;
  };
  const PrefixKey& key(BlockId block) const { return node(block).key; }
  SequenceView path_to(BlockId block, Path& reused) const;

  // All that follow are about one block of `sequence`, which begins at position `begin`. `parent` is the full block of the tree before
  // it, or kNoParent at the beginning.

  // The key of its tokens, a block's worth or what there is.
  PrefixKey key_after(BlockId parent, const SequenceView& sequence, std::size_t begin) {
    return key_after(parent, sequence.scope, part(sequence, begin));
  }

  // The block whose beginning has the most tokens in common with it, of those that come after `parent`. Only the newest few are looked
  // at. As with match(), the caller takes a reference.
  struct Beginning {
    BlockId block = kNoParent;
    std::int32_t count = 0;  // tokens in common; 0: there is none
  };
  Beginning common_beginning(BlockId parent, const SequenceView& sequence, std::size_t begin) {
    return common_beginning(parent, sequence.scope, part(sequence, begin));
  }

  // `block`, which the caller holds, contains all tokens from `begin` on, less than a block's worth. It may be written to behind them,
  // and insert() may follow when it is full. Does nothing when the parent is unknown, or these tokens are known after it. Returns the block
  // of the tree that begins with them then, or kNoParent.
  BlockId insert_partial(BlockId parent, const SequenceView& sequence, std::size_t begin, BlockId block);

  // `block`, which the caller holds, contains a block's worth of tokens; he holds `parent` too. Returns the block that stands for them
  // from now on: `block` itself or, when they are known, the one that match() would have found; that has the same contents, and the
  // caller must continue with it. nullopt when the key is taken by something else, or the parent is unknown: the block stays private.
  std::optional<BlockId> insert(BlockId parent, const SequenceView& sequence, std::size_t begin, BlockId block);

 private:
  // A block of the tree, and its place among those with the same parent, newest first.
  struct Node {
    PrefixKey key;                 // of a full one
    std::int32_t filled = 0;       // tokens; 0: not in the tree
    std::int32_t media_count = 0;  // of its entry in media_
    BlockId parent = kNone;
    BlockId first_child = kNone;
    BlockId newer = kNone;
    BlockId older = kNone;
    std::int32_t states_below = 0;  // checkpoints within its children
  };
  static constexpr BlockId kNone = -1;
  static constexpr int kSiblings = 16;  // blocks that are looked at for a common beginning
  // What a block holds, or shall hold.
  struct Part {
    std::span<const std::int32_t> tokens;
    std::span<const MediaSpan> media;  // positions count from its first token
  };
  struct OwnScope {
    std::string adapter;
    std::string salt;
    operator Scope() const { return {adapter, salt}; }  // NOLINT: a view of it
  };
  struct ScopeLess {
    using is_transparent = void;
    bool operator()(const Scope& one, const Scope& other) const { return one < other; }
  };

  // Valid until the next call.
  Part part(const SequenceView& sequence, std::size_t begin) {
    return {sequence.tokens.subspan(begin, std::min(block_tokens_, sequence.tokens.size() - begin)),
            sequence.media.empty() ? sequence.media : media_within(sequence, begin)};
  }
  std::span<const MediaSpan> media_within(const SequenceView& sequence, std::size_t begin);
  Part part_of(BlockId block) const;
  Scope scope_of(BlockId root) const;

  PrefixKey root_key(const Scope& scope);
  PrefixKey block_key(const PrefixKey& parent, const Part& part);
  PrefixKey key_after(BlockId parent, const Scope& scope, const Part& part) {
    return block_key(parent == kNoParent ? root_key(scope) : node(parent).key, part);
  }
  std::size_t home(const PrefixKey& key) const { return key.low & (slots_.size() - 1); }
  std::size_t find_slot(const PrefixKey& key) const;
  bool holds(BlockId block, BlockId parent, const Scope& scope, const Part& part) const;
  bool has_media(BlockId block, std::span<const MediaSpan> media) const;
  Beginning common_beginning(BlockId parent, const Scope& scope, const Part& part) const;
  void prefetch(std::span<const PrefixKey> keys) const;
  bool is_known(BlockId parent) const { return parent == kNoParent || node(parent).filled > 0; }
  BlockId& first_child(BlockId parent, const Scope& scope);
  std::size_t handle_place(BlockId node, std::int32_t group) const {
    return static_cast<std::size_t>(node) * static_cast<std::size_t>(groups_.count - 1) + static_cast<std::size_t>(group - 1);
  }
  // After the first `offset` tokens of a node, in ascending order.
  struct Checkpoint {
    std::int32_t offset = 0;
    std::vector<BlockId> state;
    std::uint64_t used = 0;  // its key in by_use_
    PrefixKey key;           // in within_, of one within its block
  };
  struct KeyHash {
    std::size_t operator()(const PrefixKey& key) const { return key.low; }
  };
  struct FoundCheckpoint {
    BlockId node = kNone;
    Checkpoint* checkpoint = nullptr;  // null: there is none
  };
  std::int32_t& states_below(BlockId parent) { return parent == kNoParent ? states_below_none_ : node(parent).states_below; }
  Part beginning_of(const Part& part, std::int32_t count);
  StateHit look_for_state(const SequenceView& sequence, std::span<const BlockId> path, bool is_used);
  FoundCheckpoint checkpoint_of(BlockId node);
  FoundCheckpoint checkpoint_within(BlockId parent, const Scope& scope, const Part& wanted, std::int32_t least);
  void enter(BlockId node, Checkpoint& checkpoint);
  void strike(BlockId node, const Checkpoint& checkpoint);
  void use(Checkpoint& checkpoint);
  void drop_unused_states();
  std::vector<Checkpoint> take_checkpoints(BlockId node);
  void give_checkpoints(BlockId node, std::vector<Checkpoint> checkpoints);
  bool hang(BlockId node, Checkpoint checkpoint);
  void forget_state(const Checkpoint& checkpoint);
  bool lose_state(BlockId block);
  bool lose_handle(BlockId block);
  std::int32_t group_of(BlockId node, BlockId handle) const;
  void detach(BlockId block);
  void forget(BlockId block);
  std::optional<BlockId> insert_full(BlockId parent, const SequenceView& sequence, const Part& full, BlockId block);
  BlockId insert_part(BlockId parent, const SequenceView& sequence, const Part& filled, BlockId block);
  void add(BlockId block, BlockId parent, const Scope& scope, const Part& part, const PrefixKey& key);
  void remove(BlockId block);
  bool is_full(BlockId node) const { return this->node(node).filled == static_cast<std::int32_t>(block_tokens_); }
  void announce(BlockId node) const;
  void announce_states(BlockId node) const;
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
  std::function<void(BlockId, std::int32_t, std::int32_t)> on_evict_;
  std::vector<Node> nodes_;           // [total]
  std::vector<std::int32_t> tokens_;  // [total, block_tokens]
  Groups groups_;
  std::vector<BlockId> handles_;                                      // [total, groups - 1]
  std::vector<BlockId> owners_;                                       // [total], with more than one group: whose handle a block is
  std::unordered_map<BlockId, std::vector<Checkpoint>> checkpoints_;  // by node, of those that have any
  std::unordered_multimap<PrefixKey, BlockId, KeyHash> within_;       // nodes by the keys of their checkpoints within the block
  std::int32_t states_below_none_ = 0;                                // of these, in blocks without a parent
  std::unordered_map<BlockId, BlockId> state_nodes_;                  // whose checkpoint a block is a part of
  std::map<std::uint64_t, BlockId> by_use_;                           // the first block of each checkpoint's state, that used last behind
  std::uint64_t uses_ = 0;
  std::int32_t most_state_blocks_ = std::numeric_limits<std::int32_t>::max();
  std::uint64_t states_dropped_ = 0;
  std::vector<BlockId> slots_;                                 // hash table with linear probing, at most half full; -1: vacant
  std::unordered_map<BlockId, std::vector<MediaSpan>> media_;  // of blocks that have any
  std::unordered_map<BlockId, OwnScope> scopes_;               // of blocks without a parent; absent: an empty one
  std::map<OwnScope, BlockId, ScopeLess> first_blocks_;        // by scope: the newest of those without a parent
  std::vector<MediaSpan> part_media_;                          // what part() cuts out
  std::vector<MediaSpan> beginning_media_;                     // what beginning_of() cuts out
  std::vector<std::byte> message_;                             // what is being digested
};

}  // namespace braid::cache
