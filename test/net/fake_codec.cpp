#include "net/fake_codec.h"

#include "net/json/write.h"

namespace braid::test {
namespace {

constexpr std::string_view kEosText = "<eos>";

class ByteDecoder final : public StreamDecoder {
 public:
  void append(TokenId token, std::string& out) override {
    if (token < 256) tail_ += static_cast<char>(token);
    while (const std::size_t length = net::json::utf8_length(tail_)) {
      out.append(tail_, 0, length);
      tail_.erase(0, length);
    }
  }

  void finish(std::string& out) override {
    if (!tail_.empty()) out += "\xEF\xBF\xBD";
    tail_.clear();
  }

 private:
  std::string tail_;
};

std::string describe(const Value& value) {
  if (const auto* text = value.get_if<std::string>()) return *text;
  if (const auto* number = value.get_if<std::int64_t>()) return std::to_string(*number);
  std::string out;
  if (const auto* list = value.get_if<ValueList>()) {
    for (const Value& item : *list) out += "[" + describe(item) + "]";
  } else if (const auto* dict = value.get_if<ValueDict>()) {
    for (const auto& [key, item] : *dict) out += "{" + key + "=" + describe(item) + "}";
  }
  return out;
}

}  // namespace

Result<std::vector<TokenId>> FakeCodec::encode(std::string_view text, const EncodeOptions& options) const {
  std::vector<TokenId> ids;
  if (options.add_special) ids.push_back(kBos);
  while (!text.empty()) {
    const bool special = options.parse_special && text.starts_with(kEosText);
    ids.push_back(special ? kEos : static_cast<unsigned char>(text.front()));
    text.remove_prefix(special ? kEosText.size() : 1);
  }
  return ids;
}

Result<RenderedChat> FakeCodec::render(const ChatPrompt& prompt) const {
  if (const Value* fail = prompt.kwargs.find("fail"); fail != nullptr)
    return invalid_argument("the chat template failed in line 3", "messages");
  std::string text;
  for (const Value& message : *prompt.messages.get_if<ValueList>()) {
    text += describe(*message.find("role")) + ":" + describe(*message.find("content"));
    if (const Value* calls = message.find("tool_calls")) text += describe(*calls);
    text += ";";
  }
  if (prompt.continue_final_message) text.pop_back();
  return RenderedChat{text + (prompt.add_generation_prompt ? "assistant:" : ""), {}};
}

std::unique_ptr<StreamDecoder> FakeCodec::new_decoder() const { return std::make_unique<ByteDecoder>(); }

std::string FakeCodec::token_bytes(TokenId token) const {
  if (token < 256) return std::string(1, static_cast<char>(token));
  return token == kEos ? std::string(kEosText) : "";
}

}  // namespace braid::test
