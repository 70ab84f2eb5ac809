// Texts that are tokens wherever they stand, before a text is normalized and cut: "added_tokens" of tokenizer.json.
#pragma once

#include "braid/text_codec.h"
#include "text/tokenizer/pipeline/config_node.h"
#include "text/tokenizer/pipeline/normalizer.h"
#include "text/tokenizer/pipeline/piece_list.h"
#include "text/tokenizer/pipeline/word_model.h"
#include "text/tokenizer/prefix_trie.h"

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace braid::text {

struct AddedToken {
  TokenId id = 0;
  std::string content;
  bool single_word = false;   // only between characters that are no part of a word
  bool strips_left = false;   // white space before it belongs to it
  bool strips_right = false;  // likewise behind it
  bool normalized = true;     // is looked for after normalizing, and normalized itself
  bool special = false;       // a control token
  std::string normal;         // what is looked for, and what it is decoded to
};

// Immutable: any thread may use it.
class AddedTokens {
 public:
  // As the library does: a token that the model has keeps the model's id, others are counted on from `next_id`.
  static AddedTokens read(const ConfigNode& document, const WordModelVocabulary& vocabulary, const Normalizer* normalizer,
                          std::vector<std::string>& warnings);

  const std::vector<AddedToken>& all() const { return tokens_; }

  // A token of this id, if there is one, becomes a control token.
  void make_special(TokenId id);

  // Cuts a text at the tokens in it and normalizes what lies between. Control tokens are found only with options.parse_special, and not
  // where options.literal says so.
  PieceList cut(std::string_view text, const Normalizer* normalizer, const EncodeOptions& options) const;

 private:
  struct Found {
    std::size_t begin = 0, end = 0;
    TokenId token = -1;  // -1: text
  };
  template <class Wanted>
  std::vector<Found> find(std::string_view text, const PrefixTrie& trie, Wanted wanted) const;
  void append_normalized(std::string_view text, std::size_t origin, const Normalizer* normalizer, const EncodeOptions& options,
                         PieceList& out) const;
  void add(AddedToken token);

  std::vector<AddedToken> tokens_;
  std::unordered_map<TokenId, std::size_t> by_id_;  // indices of tokens_
  PrefixTrie raw_, normalized_;
};

}  // namespace braid::text
