#include "grammar/token_trie.h"

#include <algorithm>
#include <string_view>

namespace braid::grammar {

TokenTrie::TokenTrie(std::span<const std::string> bytes) : vocab_size_(bytes.size()) {
  for (std::size_t id = 0; id < bytes.size(); ++id)
    if (!bytes[id].empty()) tokens_.push_back(static_cast<TokenId>(id));
  const auto text = [&](TokenId id) { return std::string_view(bytes[static_cast<std::size_t>(id)]); };
  std::stable_sort(tokens_.begin(), tokens_.end(), [&](TokenId a, TokenId b) { return text(a) < text(b); });

  byte_ = {0};
  end_ = {0};
  tokens_begin_ = {0};
  std::vector<std::uint32_t> path = {0};  // nodes from the root to the last token
  const auto close = [&](std::size_t depth) {
    for (; path.size() > depth + 1; path.pop_back()) end_[path.back()] = node_count();
  };
  std::string_view last;
  for (std::uint32_t i = 0; i < tokens_.size(); ++i) {
    const std::string_view token = text(tokens_[i]);
    const auto shared = static_cast<std::size_t>(std::mismatch(last.begin(), last.end(), token.begin(), token.end()).first - last.begin());
    close(shared);
    for (std::size_t depth = shared; depth < token.size(); ++depth) {
      path.push_back(node_count());
      byte_.push_back(static_cast<std::uint8_t>(token[depth]));
      end_.push_back(0);
      tokens_begin_.push_back(i);
    }
    last = token;
  }
  close(0);
  end_[0] = node_count();
  tokens_begin_.push_back(static_cast<std::uint32_t>(tokens_.size()));
}

}  // namespace braid::grammar
