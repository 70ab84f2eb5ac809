// Images in chats: all dialects' forms, through the one generation path, with a reader that makes of a file as many vectors as it says.
#include "net/fake_chat.h"
#include "net/generation/shown_images.h"
#include "net/test_server.h"

#include <algorithm>
#include <atomic>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace braid::test {
namespace {

using testing::HasSubstr;

constexpr TokenId kVector = kVocab - 1;
constexpr std::string_view kVectorText = "<v>";

// Of a file "3" three vectors between brackets, the second half of them behind a bar; of "bad" nothing.
class FakeReader final : public ImageReader {
 public:
  Result<ReadImage> read(std::string_view file, const ImageWish& wish) const override {
    ++reads;
    if (file == "bad") return invalid_argument("the image is no JPEG, PNG, WebP, GIF or BMP file");
    auto pixels = std::make_shared<Pixels>();
    pixels->vectors = std::stoi(std::string(file)) - (wish.detail == ImageDetail::kLow ? 1 : 0);
    pixels->digest = {static_cast<std::uint64_t>(pixels->vectors), 7};
    std::string text = "[";
    for (std::int32_t i = 0; i < pixels->vectors; ++i) text += (i > 0 && i == pixels->vectors / 2 ? "|" : "") + std::string(kVectorText);
    return ReadImage{pixels, text + "]"};
  }
  std::string_view placeholder() const override { return "<image>"; }
  TokenId vector_token() const override { return kVector; }

  mutable std::atomic<int> reads = 0;
};

// Writes parts, if it is told to, and tells where a client spells the placeholder.
class SeeingCodec final : public FakeCodec {
 public:
  explicit SeeingCodec(bool writes_parts = true) {
    chat_template = writes_parts ? "tools image part['type'] content is string" : "tools content";
  }

  Result<std::vector<TokenId>> encode(std::string_view text, const EncodeOptions& options) const override {
    std::vector<TokenId> ids;
    while (!text.empty()) {
      const bool special = options.parse_special && text.starts_with(kVectorText);
      ids.push_back(special ? kVector : static_cast<unsigned char>(text.front()));
      text.remove_prefix(special ? kVectorText.size() : 1);
    }
    return ids;
  }

  Result<RenderedChat> render(const ChatPrompt& prompt) const override {
    RenderedChat chat;
    for (const Value& message : *prompt.messages.get_if<ValueList>()) {
      chat.text += *message.find("role")->get_if<std::string>() + ":";
      const Value& content = *message.find("content");
      if (const auto* text = content.get_if<std::string>()) {
        append(chat, *text);
      } else {
        for (const Value& part : *content.get_if<ValueList>())
          *part.find("type") == Value("image") ? void(chat.text += "<image>") : append(chat, *part.find("text")->get_if<std::string>());
      }
      chat.text += ';';
    }
    return chat;
  }

 private:
  static void append(RenderedChat& chat, const std::string& words) {
    for (std::size_t at = words.find("<image>"); at != std::string::npos; at = words.find("<image>", at + 1))
      chat.literal.push_back(chat.text.size() + at);
    chat.text += words;
  }
};

// A prompt as text, its vectors as "*".
std::string shown(const std::vector<TokenId>& prompt) {
  std::string text;
  for (const TokenId id : prompt) text += id == kVector ? '*' : static_cast<char>(id);
  return text;
}

class Images : public testing::Test {
 protected:
  Images() {
    server.on_loop([&] {
      server.model().codec = &codec;
      server.model().images = &reader;
      server.model().context_length = 1000;
    });
  }

  GenerationRequest submitted() {
    GenerationRequest request;
    server.on_loop([&] { request = server.engine().submitted.at(0); });
    return request;
  }

  SeeingCodec codec;
  FakeReader reader;
  TestServer server;
};

// "3", "2" and "bad" in base64: Mw==, Mg==, YmFk
constexpr char kThree[] = "data:image/png;base64,Mw==";

TEST_F(Images, OfAnOpenAiChatStandInThePromptAsTheModelsProcessorWritesThem) {
  const Reply reply = server.ask(post("/v1/chat/completions", R"({"messages":[{"role":"user","content":[{"type":"text","text":"What is "},)"
                                                              R"({"type":"image_url","image_url":{"url":")" +
                                                                  std::string(kThree) +
                                                                  R"(","detail":"high"}},)"
                                                                  R"({"type":"text","text":"?"}]}]})"));
  EXPECT_EQ(reply.status, 200) << reply.body;
  const GenerationRequest request = submitted();
  EXPECT_EQ(shown(request.prompt), "user:What is [*|**]?;");
  ASSERT_EQ(request.media.size(), 2U);
  EXPECT_EQ(request.media[0].first, 14);
  EXPECT_EQ(request.media[0].count, 1);
  EXPECT_EQ(request.media[1].first, 16);
  EXPECT_EQ(request.media[1].count, 2);
  EXPECT_NE(request.media[0].digest, request.media[1].digest);
  ASSERT_EQ(request.images.size(), 1U);
  EXPECT_EQ(request.images[0]->vectors, 3);
}

TEST_F(Images, OfSeveralTurnsKeepTheirOrderAndTheirBounds) {
  const Reply reply = server.ask(post("/v1/chat/completions", R"({"messages":[
    {"role":"system","content":[{"type":"image_url","image_url":"data:image/gif;base64,MQ=="},{"type":"text","text":"S"}]},
    {"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,Mg=="}},{"type":"image_url","image_url":{"url":"data:image/png;base64,Mw==","detail":"low"}}]},
    {"role":"assistant","content":"A"},
    {"role":"tool","tool_call_id":"1","content":[{"type":"text","text":"R"},{"type":"image_url","image_url":{"url":"data:image/png;base64,MQ=="}}]},
    {"role":"user","content":"<image> again"}]})"));
  EXPECT_EQ(reply.status, 200) << reply.body;
  const GenerationRequest request = submitted();
  EXPECT_EQ(shown(request.prompt), "system:[*]S;user:[*|*][*|*];assistant:A;tool:R[*];user:<image> again;");
  std::vector<std::int32_t> vectors;
  for (const SharedPixels& pixels : request.images) vectors.push_back(pixels->vectors);
  EXPECT_EQ(vectors, (std::vector<std::int32_t>{1, 2, 2, 1}));
  EXPECT_EQ(request.media.size(), 6U);
  EXPECT_TRUE(std::ranges::all_of(request.media, [](const MediaSpan& span) { return span.count == 1; }));
}

TEST_F(Images, OfOtherDialectsGiveTheSamePrompt) {
  const std::string kData = "data:image/png;base64,Mw==";
  for (const auto& [path, body] : {
           std::pair{"/v1/responses",
                     R"({"input":[{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":")" + kData +
                         R"("}]}]})"},
           {"/v1/messages", std::string(R"({"max_tokens":5,"messages":[{"role":"user","content":[{"type":"text","text":"a"},)"
                                        R"({"type":"image","source":{"type":"base64","media_type":"image/png","data":"Mw=="}}]}]})")},
       }) {
    SCOPED_TRACE(path);
    const Reply reply = server.ask(post(path, body));
    EXPECT_EQ(reply.status, 200) << reply.body;
    server.on_loop([&] {
      EXPECT_EQ(shown(server.engine().submitted.back().prompt), "user:a[*|**];");
      EXPECT_EQ(server.engine().submitted.back().images.size(), 1U);
    });
  }
  for (const auto& [path, body] : {std::pair{"/api/chat", R"({"messages":[{"role":"user","content":"a","images":["Mw=="]}]})"},
                                   {"/api/generate", R"({"prompt":"a","images":["Mw=="]})"}}) {
    SCOPED_TRACE(path);
    EXPECT_EQ(server.ask(post(path, body)).status, 200);
    server.on_loop([&] { EXPECT_EQ(shown(server.engine().submitted.back().prompt), "user:[*|**]a;"); });
  }
  EXPECT_EQ(server.ask(post("/api/generate", R"({"prompt":"a","raw":true,"images":["Mw=="]})")).status, 400);
}

TEST_F(Images, OfToolResultsAreSeen) {
  const Reply messages = server.ask(post(
      "/v1/messages", R"({"max_tokens":5,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},)"
                      R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"see"},)"
                      R"({"type":"image","source":{"type":"base64","media_type":"image/png","data":"MQ=="}}]}]}]})"));
  EXPECT_EQ(messages.status, 200) << messages.body;
  EXPECT_EQ(shown(submitted().prompt), "assistant:;tool:see[*];");
  const Reply responses = server.ask(
      post("/v1/responses",
           R"({"input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c",)"
           R"("output":[{"type":"input_text","text":"see"},{"type":"input_image","image_url":"data:image/png;base64,MQ=="}]}]})"));
  EXPECT_EQ(responses.status, 200) << responses.body;
  server.on_loop([&] { EXPECT_EQ(shown(server.engine().submitted.back().prompt), "assistant:;tool:see[*];"); });
}

TEST_F(Images, AreWrittenIntoTheTextForATemplateThatKnowsNone) {
  const SeeingCodec plain(false);
  server.on_loop([&] { server.model().codec = &plain; });
  const Reply reply = server.ask(post("/v1/chat/completions", R"({"messages":[{"role":"user","content":[{"type":"text","text":"a"},)"
                                                              R"({"type":"image_url","image_url":{"url":"data:image/png;base64,Mw=="}},)"
                                                              R"({"type":"text","text":"b <image>"}]}]})"));
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(shown(submitted().prompt), "user:a\n[*|**]\nb <image>;");
}

TEST_F(Images, OfToolResultsStandBehindWordsForATemplateThatKnowsNoTools) {
  codec.chat_template = "image part['type'] content is string";
  const Reply reply =
      server.ask(post("/v1/chat/completions", R"({"messages":[{"role":"tool","tool_call_id":"1","content":[)"
                                              R"({"type":"image_url","image_url":{"url":"data:image/png;base64,MQ=="}}]}]})"));
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(shown(submitted().prompt), "user:Result of the call: [*];");
}

// A body is read on the loop, where images would be in the way of everybody.
TEST_F(Images, AreNotLookedAtWhileABodyIsRead) {
  const Reply reply =
      server.ask(post("/v1/messages", R"({"max_tokens":5,"context_management":{"edits":[{"type":"clear_tool_uses_20250919",)"
                                      R"("trigger":{"type":"input_tokens","value":1}}]},"messages":[{"role":"user","content":[)"
                                      R"({"type":"image","source":{"type":"base64","data":"Mw=="}}]}]})"));
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(shown(submitted().prompt), "user:[*|**];");
  EXPECT_EQ(reader.reads, 1);
}

TEST_F(Images, AreCountedWhereTokensAre) {
  const std::string messages =
      R"("messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":")" + std::string(kThree) +
      R"("}}]}])";
  EXPECT_THAT(server.ask(post("/tokenize", "{" + messages + "}")).body, HasSubstr(R"("count":13)"));
  EXPECT_THAT(server
                  .ask(post("/v1/messages/count_tokens", R"({"messages":[{"role":"user","content":[{"type":"text","text":"a"},)"
                                                         R"({"type":"image","source":{"type":"base64","data":"Mw=="}}]}]})"))
                  .body,
              HasSubstr(R"("input_tokens":13)"));
  EXPECT_THAT(server
                  .ask(post("/v1/responses/input_tokens", R"({"input":[{"role":"user","content":[{"type":"input_text","text":"a"},)"
                                                          R"({"type":"input_image","image_url":"data:image/png;base64,Mw=="}]}]})"))
                  .body,
              HasSubstr(R"("input_tokens":13)"));
}

std::string param_of(const std::string& body) {
  const std::size_t at = body.find("\"param\":");
  return at == std::string::npos ? body : body.substr(at + 8, body.find_first_of(",}", at + 8) - at - 8);
}

TEST_F(Images, ThatCannotBeReadAreNamed) {
  const auto ask = [&](const std::string& url) {
    return server.ask(post("/v1/chat/completions",
                           R"({"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":")" + url + R"("}}]}]})"));
  };
  for (const char* url : {"data:image/png;base64,YmFk", "data:image/png;base64,", "data:image/png;base64,!!", "data:image/png,x",
                          "file:///etc/passwd", "/etc/passwd", "", "https://pictures.example/a.png", "data:image/png;base64,MTAwMA=="}) {
    SCOPED_TRACE(url);
    const Reply reply = ask(url);
    EXPECT_EQ(reply.status, 400) << reply.body;
    EXPECT_EQ(param_of(reply.body), R"("messages[0].content[0].image_url.url")") << reply.body;
  }
  EXPECT_THAT(ask("https://pictures.example/a.png").body, HasSubstr("--image-host"));
  EXPECT_THAT(ask("data:image/png;base64,MTAwMA==").body, HasSubstr("1000 tokens"));
  EXPECT_EQ(
      server.ask(post("/v1/responses", R"({"input":[{"role":"user","content":[{"type":"input_image","file_id":"file-1"}]}]})")).status,
      400);
  server.on_loop([&] { EXPECT_TRUE(server.engine().submitted.empty()); });
}

TEST_F(Images, ThatAModelSeesThemIsSaidWhereClientsLook) {
  EXPECT_THAT(server.ask(get("/props")).body, HasSubstr(R"("modalities":{"vision":true,"audio":false})"));
  EXPECT_THAT(server.ask(post("/api/show", "{}")).body, HasSubstr(R"("vision")"));
  server.on_loop([&] { server.model().images = nullptr; });
  EXPECT_THAT(server.ask(get("/props")).body, HasSubstr(R"("modalities":{"vision":false,"audio":false})"));
}

TEST_F(Images, AreRefusedByAModelOfTextWhichNamesThoseThatSee) {
  ServedModel blind = kFakeModel;
  blind.id = "blind";
  server.on_loop([&] {
    blind.engine = &server.engine();
    server.model().id = "owl";
    server.status().models = ModelDirectory({&server.model(), &blind});
  });
  for (
      const auto& [path, body] : {
          std::pair{
              "/v1/chat/completions",
              R"({"model":"blind","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,Mw=="}}]}]})"},
          {"/v1/messages",
           R"({"model":"blind","max_tokens":5,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","data":"Mw=="}}]}]})"},
          {"/v1/responses",
           R"({"model":"blind","input":[{"role":"user","content":[{"type":"input_image","image_url":"https://a.example/x"}]}]})"},
          {"/api/chat", R"({"model":"blind","messages":[{"role":"user","content":"a","images":["Mw=="]}]})"},
      }) {
    SCOPED_TRACE(path);
    const Reply reply = server.ask(post(path, body));
    EXPECT_EQ(reply.status, 400) << reply.body;
    EXPECT_THAT(reply.body, HasSubstr("the model 'blind' reads text alone; one that sees is here: owl"));
  }
  server.on_loop([&] { server.status().models = ModelDirectory({&server.model()}); });
}

net::ServerOptions options_with(std::function<Result<std::string>(const std::string&)> fetch) {
  net::ServerOptions options = test_options();
  options.fetch_image = std::move(fetch);
  return options;
}

TEST(FetchedImages, ComeFromTheirAddresses) {
  SeeingCodec codec;
  FakeReader reader;
  TestServer server(options_with([](const std::string& url) -> Result<std::string> {
    if (url == "https://a.example/3") return std::string("3");
    return invalid_argument("the answer was 404");
  }));
  server.on_loop([&] {
    server.model().codec = &codec;
    server.model().images = &reader;
  });
  const auto body = [](const std::string& url) {
    return R"({"max_tokens":5,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":")" + url + R"("}}]}]})";
  };
  const Reply reply = server.ask(post("/v1/messages", body("https://a.example/3")));
  EXPECT_EQ(reply.status, 200) << reply.body;
  server.on_loop([&] { EXPECT_EQ(shown(server.engine().submitted.at(0).prompt), "user:[*|**];"); });
  const Reply none = server.ask(post("/v1/messages", body("https://a.example/4")));
  EXPECT_EQ(none.status, 400);
  EXPECT_THAT(none.body, HasSubstr("'messages[0].content[0].source.url' could not be fetched: the answer was 404"));
}

// Of templates of models that see: one that takes lists of parts alone, one that takes both, and one of a model of text.
TEST(ShownImages, TemplatesThatTakePartsAloneGetThem) {
  EXPECT_TRUE(
      net::wants_parts("{% for c in m['content'] %}{% if c['type'] == 'image' %}<image>{% else %}{{ c['text'] }}{% endif %}{% endfor %}"));
  EXPECT_FALSE(net::wants_parts("{% if m.content is string %}{{ m.content }}{% else %}{% if c.type == 'image' %}{% endif %}{% endif %}"));
  EXPECT_FALSE(net::wants_parts("{{ m['content'] }}{{ tool['type'] }}"));
  ChatPrompt chat;
  chat.messages = ValueList{ValueDict{{"role", "user"}, {"content", "a"}}, ValueDict{{"role", "assistant"}, {"content", ""}}};
  net::write_contents_as_parts(chat);
  const auto& messages = *chat.messages.get_if<ValueList>();
  EXPECT_EQ(*messages[0].find("content"), Value(ValueList{ValueDict{{"type", "text"}, {"text", "a"}}}));
  EXPECT_EQ(*messages[1].find("content"), Value(ValueList{}));
}

}  // namespace
}  // namespace braid::test
