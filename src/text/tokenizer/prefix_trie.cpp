#include "text/tokenizer/prefix_trie.h"

namespace braid::text {

std::uint32_t PrefixTrie::find(std::uint32_t first, char byte) const {
  while (first != kNone && nodes_[first].byte != byte) first = nodes_[first].next_sibling;
  return first;
}

void PrefixTrie::insert(std::string_view text, TokenId token) {
  if (text.empty()) return;
  std::uint32_t parent = kNone;
  for (const char c : text) {
    const std::uint32_t siblings = parent == kNone ? roots_[static_cast<unsigned char>(c)] : nodes_[parent].first_child;
    std::uint32_t node = find(siblings, c);
    if (node == kNone) {
      node = static_cast<std::uint32_t>(nodes_.size());
      nodes_.push_back({kNone, siblings, -1, c});
      (parent == kNone ? roots_[static_cast<unsigned char>(c)] : nodes_[parent].first_child) = node;
    }
    parent = node;
  }
  if (nodes_[parent].token < 0) nodes_[parent].token = token;
}

bool PrefixTrie::holds_beginning(std::string_view text, std::size_t at) const {
  std::uint32_t node = at < text.size() ? roots_[static_cast<unsigned char>(text[at])] : kNone;
  for (std::size_t next = at + 1; node != kNone && next < text.size(); ++next) node = find(nodes_[node].first_child, text[next]);
  return node != kNone && nodes_[node].first_child != kNone;
}

PrefixTrie::Match PrefixTrie::longest(std::string_view text, std::size_t at) const {
  Match best;
  std::uint32_t node = at < text.size() ? roots_[static_cast<unsigned char>(text[at])] : kNone;
  for (std::size_t end = at + 1; node != kNone; ++end) {
    if (nodes_[node].token >= 0) best = {nodes_[node].token, end - at};
    if (end == text.size()) break;
    node = find(nodes_[node].first_child, text[end]);
  }
  return best;
}

}  // namespace braid::text
