#include "text/codec.h"

#include "text/client_words.h"
#include "text/common_templates.h"
#include "text/role_rules.h"
#include "text/tokenizer/utf8_stream.h"

#include <utility>

namespace braid::text {
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

// A template that does not know OpenAI's newer name for the system's role gets the older one.
void rename_developers(Value& messages) {
  auto* list = messages.get_if<ValueList>();
  if (list == nullptr) return;
  for (Value& message : *list) {
    auto* members = message.get_if<ValueDict>();
    if (members == nullptr) continue;
    for (auto& [name, value] : *members)
      if (name == "role" && value == Value("developer")) value = "system";
  }
}

constexpr std::string_view kSpace = " \t\n\r\f\v";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kSpace);
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

constexpr std::string_view kEndMark = "\x02end of words\x03";  // in no sane message, and handed on by templates as words

// Marks where the last message's words end, without the white space behind them, which many templates trim.
Result<void> mark_last_message(Value& messages) {
  auto* list = messages.get_if<ValueList>();
  auto* members = list != nullptr && !list->empty() ? list->back().get_if<ValueDict>() : nullptr;
  if (members != nullptr)
    for (auto& [name, value] : *members) {
      const auto* words = name == "content" ? value.get_if<std::string>() : nullptr;
      if (words == nullptr || trimmed(*words).empty()) continue;
      const std::size_t end = words->find_last_not_of(kSpace) + 1;
      value = words->substr(0, end).append(kEndMark);
      return {};
    }
  return invalid_argument("'continue_final_message' needs a last message with text", "continue_final_message");
}

// Cuts what the template writes behind the mark, so that the model goes on with the words.
Result<void> end_at_mark(RenderedChat& chat) {
  const std::size_t at = chat.text.rfind(kEndMark);
  if (at == std::string::npos)
    return invalid_argument("the model's chat template changes the last message, so that it cannot be continued", "continue_final_message");
  chat.text.resize(at);
  std::erase_if(chat.literal, [at](std::size_t place) { return place >= at; });
  return {};
}

std::string text_of(const Tokenizer& tokenizer, std::optional<TokenId> token) {
  return token ? std::string(tokenizer.token_bytes(*token)) : std::string();
}

}  // namespace

Result<std::unique_ptr<const ModelCodec>> ModelCodec::from_gguf(const files::GgufFile& file, std::vector<TemplateSource> templates) {
  auto tokenizer = Tokenizer::from_gguf(file);
  if (!tokenizer) return tokenizer.error();
  if (templates.empty()) {
    auto own = read_template_sources(file);
    if (!own) return own.error();
    templates = std::move(*own);
  }
  const bool without = templates.empty();
  const std::string_view name = fitting_template(tokenizer->vocabulary());
  if (without) templates.push_back(*common_template(name));
  std::unique_ptr<ModelCodec> codec(new ModelCodec(std::move(*tokenizer), std::move(templates)));
  if (without) codec->assume_template(name);
  return std::unique_ptr<const ModelCodec>(std::move(codec));
}

ModelCodec::ModelCodec(Tokenizer tokenizer, std::vector<TemplateSource> sources)
    : tokenizer_(std::move(tokenizer)), templates_(templates_of(std::move(sources))), warnings_(tokenizer_.vocabulary().warnings) {
  for (const ChatTemplates::Entry& entry : templates_.all())
    if (!entry.program) warnings_.push_back("the model's chat template cannot be used: " + entry.program.error().message);
}

// Of the tokenizer's special tokens.
ChatTemplates ModelCodec::templates_of(std::vector<TemplateSource> sources) const {
  const Vocabulary& vocabulary = tokenizer_.vocabulary();
  return ChatTemplates(std::move(sources), text_of(tokenizer_, vocabulary.bos), text_of(tokenizer_, vocabulary.eos));
}

void ModelCodec::assume_template(std::string_view name) {
  own_template_ = false;
  warnings_.push_back("the model has no chat template: chats are written as '" + std::string(name) +
                      "', which it may not know; --chat-template names another");
}

std::int32_t ModelCodec::vocab_size() const { return static_cast<std::int32_t>(tokenizer_.vocabulary().size()); }

Result<std::vector<TokenId>> ModelCodec::encode(std::string_view text, const EncodeOptions& options) const {
  return tokenizer_.encode(text, options);
}

TextEnds ModelCodec::text_ends() const {
  const Vocabulary& vocabulary = tokenizer_.vocabulary();
  return {vocabulary.bos, vocabulary.eos, vocabulary.add_bos, vocabulary.add_eos};
}

Result<RenderedChat> ModelCodec::render(const ChatPrompt& prompt) const {
  if (!prompt.template_text.empty())
    return render_with(templates_of({TemplateSource{"default", prompt.template_text}}).all().front(), prompt);
  const ChatTemplates::Entry* entry = templates_.choose(prompt);
  return entry != nullptr ? render_with(*entry, prompt) : invalid_argument("model has no chat template");
}

Result<RenderedChat> ModelCodec::render_with(const ChatTemplates::Entry& entry, const ChatPrompt& prompt) const {
  if (!entry.program) return entry.program.error();
  Result<MarkedPrompt> marked = mark_client_words(tokenizer_, entry.source.text, prompt);
  if (!marked) return marked.error();
  ChatPrompt& own = marked->prompt;
  if (entry.source.text.find("developer") == std::string::npos) rename_developers(own.messages);
  follow_role_rules(entry.roles, own.messages);
  if (own.continue_final_message) {
    own.add_generation_prompt = false;
    const Result<void> marked_end = mark_last_message(own.messages);
    if (!marked_end) return marked_end.error();
  }
  Result<std::string> text = entry.program->render(own);
  if (!text) return text.error();
  RenderedChat chat = take_out_marks(std::move(*text), marked->mark);
  if (!prompt.continue_final_message) return chat;
  const Result<void> cut = end_at_mark(chat);
  return cut ? Result<RenderedChat>(std::move(chat)) : cut.error();
}

std::string_view ModelCodec::template_source(const ChatPrompt& prompt) const {
  if (!prompt.template_text.empty()) return prompt.template_text;
  const ChatTemplates::Entry* entry = templates_.choose(prompt);
  return entry != nullptr ? std::string_view(entry->source.text) : std::string_view();
}

std::unique_ptr<StreamDecoder> ModelCodec::new_decoder() const { return std::make_unique<TokenDecoder>(tokenizer_); }

std::string ModelCodec::token_bytes(TokenId token) const { return std::string(tokenizer_.token_bytes(token)); }

}  // namespace braid::text
