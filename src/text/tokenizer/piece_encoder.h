// Text without special tokens to token ids: one implementation for each kind of vocabulary.
#pragma once

#include "braid/generation_request.h"
#include "braid/result.h"
#include "files/gguf.h"
#include "text/tokenizer/vocabulary.h"

#include <memory>
#include <string>
#include <string_view>
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

// Greedy merges by score, as SentencePiece's BPE models (Kudo and Richardson 2018). Bytes that no piece covers become byte tokens.
Result<std::unique_ptr<const PieceEncoder>> make_sentence_piece_encoder(Vocabulary& vocabulary);

// Byte-level BPE: tokenizer.ggml.merges, within the words of tokenizer.ggml.pre.
Result<std::unique_ptr<const PieceEncoder>> make_byte_pair_encoder(const files::GgufFile& file, Vocabulary& vocabulary);

// Longest match first within words, as BERT's WordPiece. In GGUF a token that begins a word is spelt with U+2581 before it.
Result<std::unique_ptr<const PieceEncoder>> make_word_piece_encoder(Vocabulary& vocabulary);

}  // namespace braid::text
