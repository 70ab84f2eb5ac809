// The text side of a model: its tokenizer and its chat template, as the HTTP side sees them.
#pragma once

#include "braid/text_codec.h"
#include "files/gguf.h"
#include "text/chat_templates.h"
#include "text/tokenizer/tokenizer.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace braid::text {

// Immutable: any thread may use it. Decoders refer to the codec and must not outlive it.
class ModelCodec final : public TextCodec {
 public:
  // Fails when the tokenizer cannot be used. A chat template that cannot be parsed is a warning: render() then explains. `templates`
  // take the place of the file's own, unless there are none. A file without any gets a common one, and a warning.
  static Result<std::unique_ptr<const ModelCodec>> from_gguf(const files::GgufFile& file, std::vector<TemplateSource> templates = {});

  std::int32_t vocab_size() const override;
  Result<std::vector<TokenId>> encode(std::string_view text, const EncodeOptions& options) const override;
  Result<EncodedPair> encode_pair(std::string_view first, std::string_view second) const override {
    return tokenizer_.encode_pair(first, second);
  }
  std::size_t closing_tokens() const override { return tokenizer_.closing_tokens(); }
  Result<RenderedChat> render(const ChatPrompt& prompt) const override;
  TextEnds text_ends() const override;
  std::optional<InfillTokens> infill_tokens() const override { return tokenizer_.vocabulary().infill; }
  std::string_view template_source(const ChatPrompt& prompt) const override;
  std::unique_ptr<StreamDecoder> new_decoder() const override;
  bool is_silent(TokenId token) const override { return tokenizer_.is_silent(token); }
  std::string token_bytes(TokenId token) const override;

  // Whether the model came with one, or was given one.
  bool has_chat_template() const { return own_template_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  // Tokens that end an answer, ascending.
  std::span<const TokenId> end_of_generation() const { return tokenizer_.vocabulary().end_of_generation; }
  std::optional<TokenId> bos() const { return tokenizer_.vocabulary().bos; }
  // Doubts about the file that loading should show, a sentence each.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  ModelCodec(Tokenizer tokenizer, std::vector<TemplateSource> sources);
  void assume_template(std::string_view name);
  ChatTemplates templates_of(std::vector<TemplateSource> sources) const;
  Result<RenderedChat> render_with(const ChatTemplates::Entry& entry, const ChatPrompt& prompt) const;

  Tokenizer tokenizer_;
  ChatTemplates templates_;
  bool own_template_ = true;
  std::vector<std::string> warnings_;
};

}  // namespace braid::text
