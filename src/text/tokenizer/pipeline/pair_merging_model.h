// "BPE" over characters: a word's characters are merged pair by pair, the pair of the lowest rank first.
#pragma once

#include "text/tokenizer/merge_table.h"
#include "text/tokenizer/pipeline/word_model.h"

#include <array>
#include <memory>
#include <optional>
#include <string>

namespace braid::text {

struct PairMergingRules {
  TokenMap ids;
  MergeTable merges;
  std::string prefix, suffix;  // of characters that do not begin a word, and of its last
  bool byte_fallback = false;  // a character that is no token becomes its bytes <0x00> … where all of them are tokens
  bool fuse_unknown = false;
  bool whole_words_first = false;
  std::optional<TokenId> unknown;
};

std::unique_ptr<const WordModel> make_pair_merging_model(PairMergingRules rules);

}  // namespace braid::text
