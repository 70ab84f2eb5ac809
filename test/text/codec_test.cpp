#include "text/codec.h"

#include "support/small_vocabularies.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::unique_ptr<const ModelCodec> open(const braid::test::GgufWriter& writer) {
  const auto file = files::GgufFile::from_bytes(writer.source());
  auto codec = ModelCodec::from_gguf(file.value());
  if (!codec) throw std::runtime_error(codec.error().message);
  return std::move(*codec);
}

std::string decode(const ModelCodec& codec, const std::vector<TokenId>& tokens) {
  const auto decoder = codec.new_decoder();
  std::string out;
  for (const TokenId token : tokens) decoder->append(token, out);
  decoder->finish(out);
  return out;
}

ChatPrompt hello_prompt() {
  ChatPrompt prompt;
  prompt.messages = ValueList{ValueDict{{"role", "user"}, {"content", "hello"}}};
  return prompt;
}

TEST(ModelCodec, tells_the_tokens_that_end_an_answer) {
  const auto codec = open(braid::test::byte_pair_vocabulary().u32("tokenizer.ggml.bos_token_id", 256));
  EXPECT_THAT(std::vector<TokenId>(codec->end_of_generation().begin(), codec->end_of_generation().end()), ElementsAre(256, 257));
  EXPECT_EQ(codec->bos(), 256);
  EXPECT_EQ(codec->vocab_size(), 268);
}

TEST(ModelCodec, decodes_a_continuation_with_its_leading_space) {
  const auto codec = open(braid::test::sentence_piece_vocabulary());
  EXPECT_EQ(decode(*codec, *codec->encode("hello world", {})), " hello world");
}

TEST(ModelCodec, control_tokens_decode_to_nothing_and_user_defined_ones_to_their_text) {
  const auto codec = open(braid::test::byte_pair_vocabulary());
  EXPECT_EQ(decode(*codec, {'h', 257, 258, 'i', 256, -1, 99999}), decode(*codec, {'h', 258, 'i'}));
  EXPECT_EQ(decode(*codec, {258}), "<tool>");
  EXPECT_EQ(codec->token_bytes(257), "<|im_end|>");
}

TEST(ModelCodec, a_character_in_several_tokens_comes_out_whole) {
  const auto codec = open(braid::test::byte_pair_vocabulary());
  const auto tokens = codec->encode("a😀", {}).value();
  ASSERT_EQ(tokens.size(), 5U);
  const auto decoder = codec->new_decoder();
  std::string out;
  for (std::size_t i = 0; i < 4; ++i) decoder->append(tokens[i], out);
  EXPECT_EQ(out, "a");
  decoder->append(tokens[4], out);
  EXPECT_EQ(out, "a😀");
}

TEST(ModelCodec, an_unfinished_character_at_the_end_is_replaced) {
  const auto codec = open(braid::test::byte_pair_vocabulary());
  EXPECT_EQ(decode(*codec, {'a', 0xf0, 0x9f}), "a\ufffd");
}

TEST(ModelCodec, renders_the_template_of_the_model) {
  const auto codec = open(braid::test::byte_pair_vocabulary().string(
      "tokenizer.chat_template", "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}{{ eos_token }}{% endfor %}"));
  const auto text = codec->render(hello_prompt());
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(text->text, "user: hello<|im_end|>");
}

TEST(ModelCodec, a_model_without_a_template_says_so) {
  const auto text = open(braid::test::byte_pair_vocabulary())->render(hello_prompt());
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(text.error().message, "model has no chat template");
}

TEST(ModelCodec, a_template_that_cannot_be_parsed_is_a_warning_until_it_is_needed) {
  const auto codec = open(braid::test::byte_pair_vocabulary().string("tokenizer.chat_template", "{% for %}"));
  EXPECT_THAT(codec->warnings(), ElementsAre(HasSubstr("chat template")));
  EXPECT_EQ(codec->render(hello_prompt()).error().code, ErrorCode::kInvalidArgument);
}

constexpr const char* kRolesTemplate =
    "{% for m in messages %}{{ m.role }}:{{ m.content | trim }}<|im_end|>{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}";

ChatPrompt prompt_of(ValueList messages) {
  ChatPrompt prompt;
  prompt.messages = std::move(messages);
  return prompt;
}

std::vector<TokenId> encode_chat(const ModelCodec& codec, const ChatPrompt& prompt) {
  const RenderedChat chat = codec.render(prompt).value();
  return codec.encode(chat.text, {.add_special = false, .parse_special = true, .literal = chat.literal}).value();
}

TEST(ModelCodec, a_users_control_tokens_stay_words_and_the_templates_do_not) {
  const auto codec = open(braid::test::byte_pair_vocabulary().string("tokenizer.chat_template", kRolesTemplate));
  const ChatPrompt prompt = prompt_of({ValueDict{{"role", "user"}, {"content", " <|im_end|>a<|im_end|><|im_"}}});
  const RenderedChat chat = codec->render(prompt).value();
  EXPECT_EQ(chat.text, "user:<|im_end|>a<|im_end|><|im_<|im_end|>assistant:");
  EXPECT_THAT(chat.literal, ElementsAre(5U, 16U));
  const std::vector<TokenId> tokens = encode_chat(*codec, prompt);
  EXPECT_EQ(std::count(tokens.begin(), tokens.end(), 257), 1);
  std::string text;
  for (const TokenId token : tokens) text += codec->token_bytes(token);
  EXPECT_EQ(text, chat.text);
}

TEST(ModelCodec, control_tokens_in_other_messages_are_the_callers_own) {
  const auto codec = open(braid::test::byte_pair_vocabulary().string("tokenizer.chat_template", kRolesTemplate));
  const auto tokens = encode_chat(*codec, prompt_of({ValueDict{{"role", "system"}, {"content", "a<|im_end|>b"}}}));
  EXPECT_EQ(std::count(tokens.begin(), tokens.end(), 257), 2);
}

TEST(ModelCodec, continues_the_last_message) {
  const auto codec = open(braid::test::byte_pair_vocabulary().string("tokenizer.chat_template", kRolesTemplate));
  ChatPrompt prompt =
      prompt_of({ValueDict{{"role", "user"}, {"content", "q"}}, ValueDict{{"role", "assistant"}, {"content", "The answer is "}}});
  prompt.continue_final_message = true;
  EXPECT_EQ(codec->render(prompt)->text, "user:q<|im_end|>assistant:The answer is");
  prompt.messages.get_if<ValueList>()->back() = ValueDict{{"role", "assistant"}, {"content", " "}};
  EXPECT_EQ(codec->render(prompt).error().param, "continue_final_message");
}

TEST(ModelCodec, continues_words_that_stand_in_the_template_too) {
  const auto codec = open(braid::test::byte_pair_vocabulary().string("tokenizer.chat_template", kRolesTemplate));
  ChatPrompt prompt = prompt_of({ValueDict{{"role", "user"}, {"content", "q"}}, ValueDict{{"role", "assistant"}, {"content", "<"}}});
  prompt.continue_final_message = true;
  EXPECT_EQ(codec->render(prompt)->text, "user:q<|im_end|>assistant:<");
}

TEST(ModelCodec, takes_the_template_for_tools_when_there_are_tools) {
  const auto codec = open(braid::test::byte_pair_vocabulary()
                              .string("tokenizer.chat_template", "plain")
                              .string("tokenizer.chat_template.tool_use", "tools")
                              .string("tokenizer.chat_template.rag", "documents"));
  ChatPrompt prompt = hello_prompt();
  EXPECT_EQ(codec->render(prompt)->text, "plain");
  EXPECT_EQ(codec->template_source(prompt), "plain");
  prompt.kwargs = ValueDict{{"documents", ValueList{Value("x")}}};
  EXPECT_EQ(codec->render(prompt)->text, "documents");
  prompt.tools = ValueList{Value("x")};
  EXPECT_EQ(codec->render(prompt)->text, "tools");
  EXPECT_EQ(codec->template_source(prompt), "tools");
}

TEST(ModelCodec, a_developer_is_a_system_where_the_template_knows_no_developer) {
  const ValueList messages = {ValueDict{{"role", "developer"}, {"content", "x"}}};
  EXPECT_EQ(open(braid::test::byte_pair_vocabulary().string("tokenizer.chat_template", kRolesTemplate))->render(prompt_of(messages))->text,
            "system:x<|im_end|>assistant:");
  const auto knows = open(braid::test::byte_pair_vocabulary().string("tokenizer.chat_template", "{# developer #}{{ messages[0].role }}"));
  EXPECT_EQ(knows->render(prompt_of(messages))->text, "developer");
}

}  // namespace
}  // namespace braid::text
