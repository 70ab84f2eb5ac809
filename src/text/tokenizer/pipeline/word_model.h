// What makes tokens of the words that a splitter left: the "model" of tokenizer.json.
#pragma once

#include "braid/generation_request.h"
#include "text/tokenizer/merge_table.h"
#include "text/tokenizer/pipeline/config_node.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace braid::text {

// Hashes views and strings alike, so that a map of strings can be asked for a view.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
using TokenMap = std::unordered_map<std::string, TokenId, TextHash, std::equal_to<>>;

std::optional<TokenId> find_token(const TokenMap& tokens, std::string_view text);

// The tokens of a model.
struct WordModelVocabulary {
  TokenMap ids;
  std::vector<std::string> texts;  // by id
  std::vector<float> scores;       // by id, or empty
  std::optional<TokenId> unknown;
};

// Buffers of tokenize(), to be reused from word to word. One thread at a time.
struct WordScratch {
  std::vector<Piece> pieces;
  MergeTable::Scratch merges;
};

// Immutable: any thread may use it.
class WordModel {
 public:
  virtual ~WordModel() = default;
  // Appends the tokens of a word, which is valid UTF-8 and not empty. Time is linear in its length, or O(n log n) for merges.
  virtual void tokenize(std::string_view word, WordScratch& scratch, std::vector<TokenId>& out) const = 0;
};

// Reads "model" and fills in its vocabulary. Null when there is none that is known: the fault is then in the node.
std::unique_ptr<const WordModel> read_word_model(const ConfigNode& node, WordModelVocabulary& vocabulary);

// "vocab" as an object of ids. False when it cannot be used.
bool read_ids(const ConfigNode& node, WordModelVocabulary& vocabulary);

// Those of files of their own.
std::unique_ptr<const WordModel> read_pair_merging_model(const ConfigNode& node, WordModelVocabulary& vocabulary);
std::unique_ptr<const WordModel> read_unigram_model(const ConfigNode& node, WordModelVocabulary& vocabulary);
std::unique_ptr<const WordModel> read_longest_match_model(const ConfigNode& node, WordModelVocabulary& vocabulary);

// The most probable way to cut a word into the vocabulary's texts (Kudo 2018), given a score for each.
std::unique_ptr<const WordModel> make_unigram_model(const WordModelVocabulary& vocabulary, std::vector<double> scores, bool byte_fallback);

}  // namespace braid::text
