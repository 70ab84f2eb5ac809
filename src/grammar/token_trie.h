// The tokens of a vocabulary as one tree over their bytes.
#pragma once

#include "braid/generation_request.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace braid::grammar {

// Nodes are numbered in depth-first order with children by ascending byte; node 0 is the root. Immutable.
class TokenTrie {
 public:
  // `bytes` by token id. Tokens without bytes are not in the tree.
  explicit TokenTrie(std::span<const std::string> bytes);

  std::size_t vocab_size() const { return vocab_size_; }
  std::uint32_t node_count() const { return static_cast<std::uint32_t>(byte_.size()); }
  std::uint8_t byte(std::uint32_t node) const { return byte_[node]; }
  // The node after the last one below `node`.
  std::uint32_t end(std::uint32_t node) const { return end_[node]; }
  bool is_leaf(std::uint32_t node) const { return end_[node] == node + 1; }
  // The tokens whose bytes lead exactly to `node`.
  std::span<const TokenId> tokens(std::uint32_t node) const {
    return {tokens_.data() + tokens_begin_[node], tokens_begin_[node + 1] - tokens_begin_[node]};
  }
  // Those of `node` and of the nodes below it.
  std::span<const TokenId> tokens_from(std::uint32_t node) const {
    return {tokens_.data() + tokens_begin_[node], tokens_begin_[end(node)] - tokens_begin_[node]};
  }
  std::size_t memory_bytes() const { return byte_.size() * 9 + tokens_.size() * sizeof(TokenId); }

 private:
  std::size_t vocab_size_;
  std::vector<std::uint8_t> byte_;
  std::vector<std::uint32_t> end_;
  std::vector<std::uint32_t> tokens_begin_;  // one more than nodes
  std::vector<TokenId> tokens_;              // by node
};

}  // namespace braid::grammar
