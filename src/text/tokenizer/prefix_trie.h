// Finds the longest of a set of texts that another text begins with, in time linear in that text.
#pragma once

#include "braid/generation_request.h"

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace braid::text {

class PrefixTrie {
 public:
  struct Match {
    TokenId token = -1;    // -1: none
    std::size_t size = 0;  // in bytes
  };

  PrefixTrie() { roots_.fill(kNone); }

  // The first insertion of a text stays. Empty texts are ignored.
  void insert(std::string_view text, TokenId token);
  Match longest(std::string_view text, std::size_t at) const;
  // Calls visit(token, size) for every text that was inserted and that the text from `at` on begins with, shortest first.
  template <class Visit>
  void each_match(std::string_view text, std::size_t at, Visit visit) const {
    std::uint32_t node = at < text.size() ? roots_[static_cast<unsigned char>(text[at])] : kNone;
    for (std::size_t end = at + 1; node != kNone; ++end) {
      if (nodes_[node].token >= 0) visit(nodes_[node].token, end - at);
      if (end == text.size()) break;
      node = find(nodes_[node].first_child, text[end]);
    }
  }
  // Whether the text from `at` to its end is a proper beginning of one that was inserted.
  bool holds_beginning(std::string_view text, std::size_t at) const;
  bool may_begin_with(char c) const { return roots_[static_cast<unsigned char>(c)] != kNone; }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Node {
    std::uint32_t first_child = kNone;
    std::uint32_t next_sibling = kNone;
    TokenId token = -1;
    char byte = 0;
  };
  std::uint32_t find(std::uint32_t first, char byte) const;

  std::array<std::uint32_t, 256> roots_;
  std::vector<Node> nodes_;
};

}  // namespace braid::text
