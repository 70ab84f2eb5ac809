#include <model/codec.h>
#include <model/tokenizer/utf8_stream.h>

#include <utility>

namespace braid::model {
namespace {

class TokenDecoder final : public StreamDecoder {
 public:
  explicit TokenDecoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  // A leading space is kept: generated text continues its prompt.
  void append(TokenId token, std::string& out) override {
    if (!tokenizer_.is_silent(token)) utf8_.append(tokenizer_.token_bytes(token), out);
  }
  void finish(std::string& out) override { utf8_.finish(out); }

 private:
  const Tokenizer& tokenizer_;
  Utf8Stream utf8_;
};

std::string text_of(const Tokenizer& tokenizer, std::optional<TokenId> token) {
  return token ? std::string(tokenizer.token_bytes(*token)) : std::string();
}

}  // namespace

Result<std::unique_ptr<const ModelCodec>> ModelCodec::from_gguf(const GgufFile& file) {
  auto tokenizer = Tokenizer::from_gguf(file);
  if (!tokenizer) return tokenizer.error();
  const auto source = file.string_or("tokenizer.chat_template", "");
  if (!source) return source.error();
  std::optional<Result<ChatTemplate>> chat_template;
  if (!source->empty())
    chat_template = ChatTemplate::parse(*source, text_of(*tokenizer, tokenizer->vocabulary().bos),
                                        text_of(*tokenizer, tokenizer->vocabulary().eos));
  return std::unique_ptr<const ModelCodec>(new ModelCodec(std::move(*tokenizer), *source, std::move(chat_template)));
}

ModelCodec::ModelCodec(Tokenizer tokenizer, std::string template_source, std::optional<Result<ChatTemplate>> chat_template)
    : tokenizer_(std::move(tokenizer)),
      template_source_(std::move(template_source)),
      chat_template_(std::move(chat_template)),
      warnings_(tokenizer_.vocabulary().warnings) {
  if (chat_template_ && !*chat_template_)
    warnings_.push_back("the model's chat template cannot be used: " + chat_template_->error().message);
}

std::int32_t ModelCodec::vocab_size() const { return static_cast<std::int32_t>(tokenizer_.vocabulary().size()); }

Result<std::vector<TokenId>> ModelCodec::encode(std::string_view text, const EncodeOptions& options) const {
  return tokenizer_.encode(text, options);
}

Result<std::string> ModelCodec::render(const ChatPrompt& prompt) const {
  if (!chat_template_) return invalid_argument("model has no chat template");
  if (!*chat_template_) return chat_template_->error();
  return (*chat_template_)->render(prompt);
}

std::string_view ModelCodec::template_source(const ChatPrompt&) const { return template_source_; }

std::unique_ptr<StreamDecoder> ModelCodec::new_decoder() const { return std::make_unique<TokenDecoder>(tokenizer_); }

std::string ModelCodec::token_bytes(TokenId token) const { return std::string(tokenizer_.token_bytes(token)); }

}  // namespace braid::model
