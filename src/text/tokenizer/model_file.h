// A tokenizer that a folder holds in one file of another kind than JSON: SentencePiece's tokenizer.model, or ranks as tiktoken has them.
#pragma once

#include "braid/result.h"
#include "text/tokenizer/piece_encoder.h"
#include "text/tokenizer/vocabulary.h"

#include <memory>
#include <string_view>

namespace braid::text {

struct ModelFile {
  Vocabulary vocabulary;  // with bos, eos and unknown where the file names them
  std::unique_ptr<const PieceEncoder> encoder;
};

// Whether these are lines of a text in base64, a space and a rank.
bool looks_like_tiktoken(std::string_view bytes);

// `config` is the text of tokenizer_config.json, or empty: it has tokens beyond the file's. kBadFile or kUnsupported with a sentence.
Result<ModelFile> read_sentence_piece_file(std::string_view bytes, std::string_view config);
Result<ModelFile> read_tiktoken_file(std::string_view bytes, std::string_view config);

// Adds the tokens of "added_tokens_decoder"; false when they leave gaps of more than a few thousand ids.
bool add_configured_tokens(std::string_view config, Vocabulary& vocabulary);

}  // namespace braid::text
