// Text to tokens and back as the tokenizers library does it: added tokens, normalizer, splitter, model, post-processor; and a decoder.
#pragma once

#include "braid/result.h"
#include "braid/text_codec.h"
#include "text/tokenizer/pipeline/added_tokens.h"
#include "text/tokenizer/pipeline/normalizer.h"
#include "text/tokenizer/pipeline/post_processor.h"
#include "text/tokenizer/pipeline/splitter.h"
#include "text/tokenizer/pipeline/text_decoder.h"
#include "text/tokenizer/pipeline/word_model.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace braid::text {

struct PipelineParts {
  WordModelVocabulary vocabulary;
  std::unique_ptr<const Normalizer> normalizer;  // may be null
  std::unique_ptr<const Splitter> splitter;      // may be null
  std::unique_ptr<const WordModel> model;
  std::unique_ptr<const TextDecoder> decoder;
  AddedTokens added;
  TokenFrame frame = {std::nullopt};
  PairFrame pair = {};
  std::vector<std::string> warnings;
};

// kBadFile or kUnsupported with a sentence that names the member of tokenizer.json.
Result<PipelineParts> read_pipeline(std::string_view tokenizer_json);

// Immutable: any thread may use it.
class TokenPipeline {
 public:
  explicit TokenPipeline(PipelineParts parts);

  // Bytes that are no UTF-8 count as U+FFFD.
  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options) const;

  EncodedPair encode_pair(std::string_view first, std::string_view second) const;

  // The text of all these tokens, without control tokens when `skip_special`.
  std::string decode(std::span<const TokenId> tokens, bool skip_special) const;

  const PipelineParts& parts() const { return parts_; }
  std::size_t size() const { return texts_.size(); }
  // As the vocabulary spells it, and added tokens as they are normalized; empty for a number that is no token.
  const std::string& text(TokenId token) const { return texts_[static_cast<std::size_t>(token)]; }
  bool is_control(TokenId token) const { return control_[static_cast<std::size_t>(token)]; }

 private:
  void encode_word(std::string_view word, bool control_allowed, WordScratch& scratch, std::vector<TokenId>& out) const;

  PipelineParts parts_;
  std::vector<std::string> texts_;  // by token id
  std::vector<bool> control_;       // likewise
};

}  // namespace braid::text
