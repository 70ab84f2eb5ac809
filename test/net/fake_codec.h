// A codec without a model: each byte is a token, and there are three control tokens.
#pragma once

#include "braid/text_codec.h"

namespace braid::test {

inline constexpr TokenId kBos = 256;
inline constexpr TokenId kEos = 257;  // "<eos>" where special tokens are parsed
inline constexpr InfillTokens kInfill = {kBos, 1, 2, 3};
inline constexpr std::int32_t kVocab = 259;  // the last one is in no text

// Chats are rendered as "role:content;" per message, with "assistant:" behind, and without the last ";" where the last message is to be continued. kwargs {"fail": true} is a template error.
class FakeCodec : public TextCodec {
 public:
  std::int32_t vocab_size() const override { return kVocab; }
  Result<std::vector<TokenId>> encode(std::string_view text, const EncodeOptions& options) const override;
  Result<RenderedChat> render(const ChatPrompt& prompt) const override;
  TextEnds text_ends() const override { return {kBos, kEos, true, false}; }
  std::optional<InfillTokens> infill_tokens() const override { return kInfill; }
  std::string_view template_source(const ChatPrompt&) const override { return chat_template; }
  std::unique_ptr<StreamDecoder> new_decoder() const override;
  bool is_silent(TokenId token) const override { return token >= 256; }
  std::string token_bytes(TokenId token) const override;

  std::string chat_template = "tools";  // only shown, not rendered
};

}  // namespace braid::test
