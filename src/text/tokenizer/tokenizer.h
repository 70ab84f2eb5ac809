// Text to tokens and the bytes of tokens, for one vocabulary.
#pragma once

#include "braid/generation_request.h"
#include "braid/result.h"
#include "braid/text_codec.h"
#include "files/gguf.h"
#include "text/tokenizer/piece_encoder.h"
#include "text/tokenizer/pipeline/token_pipeline.h"
#include "text/tokenizer/prefix_trie.h"
#include "text/tokenizer/vocabulary.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace braid::text {

// The files that describe a tokenizer in a Hugging Face folder, by their contents.
struct TokenizerTexts {
  std::string_view tokenizer_json;
  std::string_view tokenizer_config;  // the names of special tokens; empty: no such file
  std::vector<TokenId> end_tokens;    // that config.json or generation_config.json names
};

// What the special tokens of a folder are for.
struct SpecialNames {
  std::string bos, eos;                  // empty: not named
  bool wants_bos = false;                // for classes of tokenizers that add it by a setting, whatever their tokenizer.json says
  std::optional<bool> add_bos, add_eos;  // add_bos_token and add_eos_token
};

// Metadata of a folder that was read as a GGUF file: those texts, under GGUF's name for the first, and the end tokens.
inline constexpr std::string_view kTokenizerJsonKey = "tokenizer.huggingface.json";
inline constexpr std::string_view kTokenizerModelKey = "tokenizer.huggingface.model";  // tokenizer.model or tiktoken's file, by its bytes
inline constexpr std::string_view kTokenizerConfigKey = "tokenizer.huggingface.config";
inline constexpr std::string_view kEndTokensKey = "tokenizer.huggingface.end_tokens";

// Immutable: any thread may use it.
class Tokenizer {
 public:
  // kUnsupported or kBadFile with a sentence when the metadata name or hold a tokenizer that cannot be used. A tokenizer.json among them
  // goes before what else they say.
  static Result<Tokenizer> from_gguf(const files::GgufFile& file);
  // Of a Hugging Face folder. kUnsupported or kBadFile with a sentence that names the file and its member.
  static Result<Tokenizer> from_json(const TokenizerTexts& texts);
  // Of a folder without tokenizer.json: `model_file` is a file of SentencePiece or of tiktoken.
  static Result<Tokenizer> from_model_file(std::string_view model_file, const TokenizerTexts& texts);

  // At any place of the text the longest special token counts. User-defined tokens are found always, control tokens only with
  // options.parse_special. Time is linear in the text, apart from merging within a word: O(n log n).
  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options) const;

  // As TextCodec's.
  EncodedPair encode_pair(std::string_view first, std::string_view second) const;
  std::size_t closing_tokens() const;

  // The text of all these tokens as one, without control tokens. In tokenizer.json a decoder may treat the first or the last token
  // otherwise than those between, which token_bytes() cannot tell.
  std::string decode(std::span<const TokenId> tokens) const;

  // Whether encode() with parse_special would find a control token at this place.
  bool spells_control_token(std::string_view text, std::size_t at) const;

  // Whether the text from here to its end is the first part of a special token.
  bool begins_control_token(std::string_view text, std::size_t at) const { return special_.holds_beginning(text, at); }

  // The bytes a token stands for; for control tokens the text that parse_special recognises. Empty for an unknown id.
  std::string_view token_bytes(TokenId token) const;
  // Whether the token is not part of an answer's text: control and unknown tokens.
  bool is_silent(TokenId token) const;

  const Vocabulary& vocabulary() const { return vocabulary_; }

 private:
  static Result<Tokenizer> from_parts(PipelineParts parts, const SpecialNames& names, const std::vector<TokenId>& end_tokens);
  Tokenizer(Vocabulary vocabulary, std::unique_ptr<const PieceEncoder> encoder);
  Tokenizer(Vocabulary vocabulary, std::unique_ptr<const TokenPipeline> pipeline);

  bool strips_right(TokenId token) const;  // whether white space after it belongs to it

  Vocabulary vocabulary_;
  std::unique_ptr<const PieceEncoder> encoder_;    // of GGUF files
  std::unique_ptr<const TokenPipeline> pipeline_;  // of all others
  PrefixTrie special_;                             // control, unknown and user-defined tokens
  PrefixTrie user_defined_;
  std::vector<std::string> bytes_;  // by token id
  std::vector<bool> silent_;        // likewise; apart and small, since every token of an answer asks
};

}  // namespace braid::text
