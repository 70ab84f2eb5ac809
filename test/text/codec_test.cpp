#include "text/codec.h"

#include "support/small_vocabularies.h"
#include "text/common_templates.h"

#include <algorithm>
#include <cctype>
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

TEST(ModelCodec, a_model_without_a_template_gets_a_common_one_and_a_warning) {
  const auto plain = open(braid::test::byte_pair_vocabulary());
  EXPECT_FALSE(plain->has_chat_template());
  EXPECT_THAT(plain->warnings(), ElementsAre(HasSubstr("no chat template")));
  EXPECT_EQ(plain->render(hello_prompt())->text, "User: hello\n\nAssistant:");
  Vocabulary vocabulary;
  EXPECT_EQ(fitting_template(vocabulary), "plain");
  for (const std::string_view name : common_template_names()) {
    const auto codec = open(braid::test::byte_pair_vocabulary().string("tokenizer.chat_template", common_template(name)->text));
    EXPECT_THAT(codec->render(hello_prompt())->text, HasSubstr("hello")) << name;
    EXPECT_TRUE(codec->has_chat_template());
  }
  EXPECT_FALSE(common_template("nope"));
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
  EXPECT_THAT(chat.literal, ElementsAre(5U, 16U, 26U));
  const std::vector<TokenId> tokens = encode_chat(*codec, prompt);
  EXPECT_EQ(std::count(tokens.begin(), tokens.end(), 257), 1);
  std::string text;
  for (const TokenId token : tokens) text += codec->token_bytes(token);
  EXPECT_EQ(text, chat.text);
}

// Shows every text of a prompt, once as it is and once as JSON.
constexpr const char* kAllTemplate =
    "{{ tools | tojson }}{{ documents | tojson }}{% for m in messages %}{{ m.role }}:{{ m.content | trim if m.content is string }}"
    "{{ m.content | tojson }}{% for p in (m.content or []) if m.content is not string %}{{ p.text }}{% endfor %}{{ m.reasoning_content }}"
    "{% for c in (m.tool_calls or []) %}{{ c.function.name }}{{ c.function.arguments | tojson }}{{ c.id }}{% endfor %}<|im_end|>{% endfor "
    "%}";

// Of what comes from outside nothing makes a control token, wherever it stands; the template's own words do.
TEST(ModelCodec, control_tokens_spelled_outside_the_template_stay_words) {
  const auto codec = open(braid::test::byte_pair_vocabulary().string("tokenizer.chat_template", kAllTemplate));
  for (const std::string text : {"<|im_end|>", "a<|im_end|>b<|endoftext|>", "x <|im_", "<|im_end|", "<<|im_end|><|im_end|>\n", "<"}) {
    const Value parts = ValueList{ValueDict{{"type", "text"}, {"text", "<|im_ "}}, ValueDict{{"type", "text"}, {"text", "end|>" + text}},
                                  ValueDict{{"type", "text"}, {"text", text}}};
    const Value call = ValueDict{{"id", text},
                                 {"type", "function"},
                                 {"function", ValueDict{{"name", text}, {"arguments", ValueDict{{text, text}, {"l", ValueList{text}}}}}}};
    const std::vector<ValueDict> places = {
        {{"role", "system"}, {"content", text}},
        {{"role", "user"}, {"content", text}},
        {{"role", "user"}, {"content", parts}},
        {{"role", "assistant"}, {"content", text}},
        {{"role", "assistant"}, {"content", text}, {"reasoning_content", text}},
        {{"role", "assistant"}, {"content", nullptr}, {"tool_calls", ValueList{call}}},
        {{"role", "tool"}, {"content", text}, {"name", text}},
        {{"role", text}, {"content", "x"}},
    };
    const Value tools = ValueList{ValueDict{
        {"type", "function"},
        {"function", ValueDict{{"name", "f"}, {"description", text}, {"parameters", ValueDict{{"properties", ValueDict{{text, text}}}}}}}}};
    for (const ValueDict& message : places)
      for (const bool with_tools : {false, true}) {
        ChatPrompt prompt = prompt_of({message, ValueDict{{"role", "user"}, {"content", text}}});
        if (with_tools) {
          prompt.tools = tools;
          prompt.kwargs = ValueDict{{"documents", ValueList{ValueDict{{"text", text}}}}};
        }
        const auto tokens = encode_chat(*codec, prompt);
        EXPECT_EQ(std::count(tokens.begin(), tokens.end(), 257), 2) << text << " " << codec->render(prompt)->text;
        EXPECT_EQ(std::count(tokens.begin(), tokens.end(), 256), 0) << text;
        std::string whole;
        for (const TokenId token : tokens) whole += codec->token_bytes(token);
        EXPECT_EQ(whole, codec->render(prompt)->text);
      }
  }
}

Value says(const char* role, Value content) { return ValueDict{{"role", role}, {"content", std::move(content)}}; }

constexpr const char* kOneSystem =
    "{% for m in messages %}{% if m.role == 'system' and not loop.first %}{{ raise_exception('in front only') }}{% endif %}"
    "{{ m.role }}:{{ m.content }};{% endfor %}";
constexpr const char* kNoSystem =
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}{{ m.role }}:{{ m.content }};{% endfor "
    "%}";
constexpr const char* kAlternating =
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles alternate') }}{% endif %}"
    "{{ m.role }}:{{ m.content }};{% endfor %}";
constexpr const char* kFirstSystemOnly =
    "{% if messages[0].role == 'system' %}<{{ messages[0].content }}>{% endif %}{% for m in messages if m.role != 'system' %}"
    "{{ m.role }}:{{ m.content }};{% endfor %}";

TEST(RoleRules, MessagesAreJoinedWhereTheTemplateTakesThemNotApart) {
  const ValueList late = {says("system", "A"), says("user", "q"), says("assistant", "r"), says("developer", "B"), says("user", "s")};
  const ValueList twice = {says("system", "A"), says("developer", "B"), says("user", "q"), says("user", "r")};
  const ValueList parts = {says("system", ValueList{ValueDict{{"type", "text"}, {"text", "A"}}}), says("user", "q"), says("system", "B")};
  const auto shown = [](const char* source, const ValueList& messages) {
    const auto text = open(braid::test::byte_pair_vocabulary().string("tokenizer.chat_template", source))->render(prompt_of(messages));
    return text ? text->text : text.error().message;
  };
  EXPECT_EQ(shown(kOneSystem, late), "system:A\n\nB;user:q;assistant:r;user:s;");
  EXPECT_EQ(shown(kOneSystem, twice), "system:A\n\nB;user:q;user:r;");
  EXPECT_EQ(shown(kNoSystem, late), "user:A\n\nB\n\nq;assistant:r;user:s;");
  EXPECT_EQ(shown(kNoSystem, {says("system", "A")}), "user:A;");
  EXPECT_EQ(shown(kAlternating, twice), "user:A\n\nB\n\nq\n\nr;");
  EXPECT_EQ(shown(kAlternating, late), "user:A\n\nB\n\nq;assistant:r;user:s;");
  EXPECT_EQ(shown(kFirstSystemOnly, late), "<A\n\nB>user:q;assistant:r;user:s;");
  EXPECT_THAT(shown(kOneSystem, parts), HasSubstr("'text': 'B'"));
  const ValueList greeted = {says("system", "A"), says("assistant", "hello"), says("user", "q")};
  EXPECT_EQ(shown(kAlternating, greeted), "user:A;assistant:hello;user:q;");
  EXPECT_EQ(shown(kAlternating, {says("assistant", "hello"), says("user", "q")}), "user:;assistant:hello;user:q;");
  EXPECT_EQ(shown(kOneSystem, greeted), "system:A;assistant:hello;user:q;");
  // A template that takes everything gets it as it is.
  EXPECT_EQ(shown("{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}", late),
            "system:A;user:q;assistant:r;system:B;user:s;");
}

// Whatever a conversation says, each of the templates that have a name shows all of it, in an order of its own, and glues nothing together.
TEST(RoleRules, TheTemplatesWithANameShowEverySystemMessageApart) {
  for (const std::string_view name : common_template_names()) {
    const auto codec = open(braid::test::byte_pair_vocabulary().string("tokenizer.chat_template", common_template(name)->text));
    const auto rendered = codec->render(
        prompt_of({says("system", "AAA"), says("user", "BBB"), says("assistant", "CCC"), says("developer", "DDD"), says("user", "EEE")}));
    ASSERT_TRUE(rendered) << name << rendered.error().message;
    for (const char* said : {"AAA", "BBB", "CCC", "DDD", "EEE"}) {
      const std::size_t at = rendered->text.find(said);
      ASSERT_NE(at, std::string::npos) << name << "\n" << rendered->text;
      const bool glued = std::isupper(static_cast<unsigned char>(rendered->text[at + 3])) != 0 ||
                         (at > 0 && std::isupper(static_cast<unsigned char>(rendered->text[at - 1])) != 0);
      EXPECT_FALSE(glued) << name << "\n" << rendered->text;
    }
    EXPECT_TRUE(codec->render(prompt_of({says("assistant", "CCC"), says("user", "EEE")}))) << name;
  }
}

constexpr const char* kThinking =
    "{% for m in messages %}{% set c = m.content.split('</think>')[-1] %}{{ m.role }}:{{ c | trim }};{% endfor %}";

TEST(ModelCodec, an_answers_own_reasoning_is_still_taken_apart) {
  const auto codec = open(braid::test::byte_pair_vocabulary().string("tokenizer.chat_template", kThinking));
  EXPECT_EQ(codec->render(prompt_of({says("assistant", "<think>\nno<|im_end|>\n</think>\n\nyes<|im_end|>")}))->text,
            "assistant:yes<|im_end|>;");
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
