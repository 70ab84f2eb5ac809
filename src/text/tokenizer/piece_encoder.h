// Text without special tokens to token ids: one implementation for each kind of vocabulary.
#pragma once

#include "braid/generation_request.h"
#include "braid/result.h"
#include "files/gguf.h"
#include "text/tokenizer/vocabulary.h"
#include "text/tokenizer/word_cutter.h"
#include "text/tokenizer/word_rules.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::text {

// Immutable: any thread may encode.
class PieceEncoder {
 public:
  virtual ~PieceEncoder() = default;
  // Appends the tokens of `text`. `at_start`: it begins the whole text or follows a special token.
  virtual void encode(std::string_view text, bool at_start, std::vector<TokenId>& out) const = 0;
};

// The encoders keep no reference to the vocabulary. Warnings are added to it.

// How SentencePiece changes a text before it is cut.
struct SentenceRules {
  std::string charsmap;                   // as in SentencePiece's files; empty: none
  bool add_space_prefix = true;           // at the start and after special tokens, where there is text
  bool remove_extra_whitespaces = false;  // at the ends, and all but one of those that follow each other
  bool space_is_suffix = false;           // the added space stands behind the text
};

// Greedy merges by score, as SentencePiece's BPE models (Kudo and Richardson 2018). Bytes that no piece covers become byte tokens.
// kBadFile when the charsmap is damaged.
Result<std::unique_ptr<const PieceEncoder>> make_sentence_piece_encoder(Vocabulary& vocabulary, const SentenceRules& rules);

// The most probable pieces, as SentencePiece's unigram models (Kudo 2018).
Result<std::unique_ptr<const PieceEncoder>> make_unigram_encoder(Vocabulary& vocabulary, const SentenceRules& rules);

// tokenizer.ggml.merges: the pairs of pieces, the best first. They view the file.
Result<std::vector<std::pair<std::string_view, std::string_view>>> read_merge_pairs(const files::GgufFile& file);

// Byte-level BPE: tokenizer.ggml.merges, within the words of `rules`.
Result<std::unique_ptr<const PieceEncoder>> make_byte_pair_encoder(const files::GgufFile& file, const WordRules& rules,
                                                                   Vocabulary& vocabulary);
// The same over characters, with U+2581 for spaces and byte tokens for what is no token: rules.plain_text.
Result<std::unique_ptr<const PieceEncoder>> make_character_pair_encoder(const files::GgufFile& file, const WordRules& rules,
                                                                        Vocabulary& vocabulary);
// Byte-level BPE whose merges follow from the tokens' ids, as in tiktoken's files.
std::unique_ptr<const PieceEncoder> make_ranked_encoder(WordCutter cutter, Vocabulary& vocabulary);

// Longest match first within words, as BERT's WordPiece. In GGUF a token that begins a word is spelt with U+2581 before it.
Result<std::unique_ptr<const PieceEncoder>> make_word_piece_encoder(Vocabulary& vocabulary);

}  // namespace braid::text
