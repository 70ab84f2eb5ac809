// What a constraint must know of a model's vocabulary.
#pragma once

#include "braid/generation_request.h"
#include "grammar/token_trie.h"

#include <cstdint>
#include <string>
#include <vector>

namespace braid::grammar {

// `bytes` is the text of each token; a control token's is its name, and it counts only where a constraint names it.
struct VocabularyToken {
  std::string bytes;
  bool control = false;
};

// Immutable.
class Vocabulary {
 public:
  Vocabulary(std::vector<VocabularyToken> tokens, std::vector<TokenId> end_tokens);

  std::size_t size() const { return bytes_.size(); }
  const TokenTrie& trie() const { return trie_; }
  // As the automaton reads them: kControlByte before a control token's name; empty for what can never be allowed.
  const std::string& bytes(TokenId token) const { return bytes_[static_cast<std::size_t>(token)]; }
  bool is_end(TokenId token) const;
  const std::vector<TokenId>& end_tokens() const { return end_tokens_; }

  // `text` with kControlByte before every control token's name in it, as a tokenizer would see them: the longest at each place.
  std::string mark_control_tokens(const std::string& text) const;

 private:
  std::vector<TokenId> end_tokens_;  // sorted
  std::vector<std::string> bytes_;
  std::vector<std::string> control_names_;  // longest first
  TokenTrie trie_;
};

}  // namespace braid::grammar
