// Which tokens an automaton can read, found by walking the vocabulary's tree and the automaton together.
#pragma once

#include "grammar/threads.h"
#include "grammar/token_trie.h"

#include <bitset>
#include <cstdint>
#include <vector>

namespace braid::grammar {

// The bytes that some thread of the top set reads.
std::bitset<256> first_bytes(const Automaton& automaton, const Threads& threads);

// Calls visit(node) for every node below `root` whose bytes, from `root` on, the top set of `threads` can read, with the set after
// them on top. Such a set may be empty when the lowest rule has returned just there. `ends` is scratch. Returns how many nodes it
// looked at.
template <class Visit>
std::size_t walk_tokens(const TokenTrie& trie, std::uint32_t root, const std::bitset<256>& first, Threads& threads,
                        std::vector<std::uint32_t>& ends, Visit&& visit) {
  std::size_t looked_at = 0;
  ends.clear();
  const auto close = [&](std::uint32_t node) {
    for (; !ends.empty() && ends.back() <= node; ends.pop_back()) threads.pop();
  };
  for (std::uint32_t node = root + 1; node < trie.end(root);) {
    close(node);
    ++looked_at;
    if (ends.empty() && !first[trie.byte(node)]) {
      node = trie.end(node);
      continue;
    }
    threads.push_byte(trie.byte(node));
    const bool alive = !threads.top().empty();
    if (alive || threads.returned()) visit(node);
    if (alive && !trie.is_leaf(node)) {
      ends.push_back(trie.end(node));
      ++node;
    } else {
      threads.pop();
      node = trie.end(node);
    }
  }
  close(trie.end(root));
  return looked_at;
}

}  // namespace braid::grammar
