// The text side of Hugging Face folders.
#include "text/folder_text.h"

#include "support/folder.h"
#include "text/codec.h"

#include <cstdlib>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class FolderText : public testing::Test {
 protected:
  FolderText() {
    write("config.json", R"({"model_type": "llama", "eos_token_id": 1})");
    const std::vector<std::byte> bytes = files::write_safetensors({});
    write("model.safetensors", std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    write("tokenizer.json",
          R"({"added_tokens": [{"id": 0, "content": "<s>", "special": true}, {"id": 1, "content": "</s>", "special": true}],
      "model": {"type": "BPE", "vocab": {"<s>": 0, "</s>": 1, "a": 2, "b": 3, "ab": 4}, "merges": ["a b"]}})");
  }

  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name, std::ios::binary) << text; }

  // Nothing, or what is wrong.
  std::string error() {
    files::GgufContents contents;
    const auto added = add_folder_text(files::HfFolder::open(folder_.path()).value(), contents.metadata);
    return added ? "none" : added.error().message;
  }

  std::unique_ptr<const ModelCodec> codec() {
    const files::HfFolder folder = files::HfFolder::open(folder_.path()).value();
    files::GgufContents contents;
    add_folder_text(folder, contents.metadata).value();
    contents.sources = folder.sources();
    file_.emplace(files::GgufFile::from_contents(std::move(contents)));
    return ModelCodec::from_gguf(*file_).value();
  }

  braid::test::Folder folder_;
  std::optional<files::GgufFile> file_;
};

TEST_F(FolderText, HasTheTokenizerAndTheEndTokensOfConfigJson) {
  const auto own = codec();
  EXPECT_THAT(own->encode("abba", {}).value(), ElementsAre(4, 3, 2));
  EXPECT_THAT(own->end_of_generation(), ElementsAre(1));
  EXPECT_FALSE(own->has_chat_template());
}

TEST_F(FolderText, GenerationConfigGoesBeforeConfigJson) {
  write("generation_config.json", R"({"eos_token_id": [1, 3], "do_sample": true, "temperature": 0.5, "top_k": 7})");
  EXPECT_THAT(codec()->end_of_generation(), ElementsAre(1, 3));
  EXPECT_EQ(file_->number_or("general.sampling.temp", 1.0).value(), 0.5);
  EXPECT_EQ(file_->number_or("general.sampling.top_k", 0.0).value(), 7.0);
}

TEST_F(FolderText, TheTemplateIsAFileOrInTheTokenizersConfiguration) {
  const auto rendered = [&] {
    ChatPrompt prompt;
    prompt.messages = ValueList{ValueDict{{"role", "user"}, {"content", "x"}}};
    return codec()->render(prompt).value().text;
  };
  write("tokenizer_config.json", R"({"bos_token": "<s>", "chat_template": "{{ bos_token }}one"})");
  EXPECT_EQ(rendered(), "<s>one");
  write("tokenizer_config.json",
        R"({"chat_template": [{"name": "tool_use", "template": "tools"}, {"name": "default", "template": "two"}]})");
  EXPECT_EQ(rendered(), "two");
  write("chat_template.jinja", "three");
  EXPECT_EQ(rendered(), "three");
}

TEST_F(FolderText, TellsWhatIsWrong) {
  EXPECT_EQ(error(), "none");
  write("generation_config.json", "[");
  EXPECT_THAT(error(), HasSubstr("generation_config.json: is not JSON"));
  write("generation_config.json", "{}");
  write("tokenizer_config.json", R"({"chat_template": [{"name": "default"}]})");
  EXPECT_THAT(error(), HasSubstr("tokenizer_config.json: an item of 'chat_template' lacks"));
  std::filesystem::remove(folder_ / "tokenizer.json");
  EXPECT_THAT(error(), HasSubstr("has neither tokenizer.json nor tokenizer.model"));
}

TEST_F(FolderText, WithoutTokenizerJsonAnotherFileOfTheTokenizerCounts) {
  std::filesystem::remove(folder_ / "tokenizer.json");
  write("config.json", R"({"model_type": "llama"})");
  write("tiktoken.model", "YQ== 0\nYg== 1\nYWI= 2\n");
  write("tokenizer_config.json", R"({"eos_token": "</s>", "added_tokens_decoder": {"3": {"content": "</s>", "special": true}}})");
  const auto own = codec();
  EXPECT_THAT(own->encode("abba</s>", {.add_special = true, .parse_special = true}).value(), ElementsAre(2, 1, 0, 3));
  EXPECT_THAT(own->end_of_generation(), ElementsAre(3));
  write("tokenizer.model", "no message");
  const files::HfFolder folder = files::HfFolder::open(folder_.path()).value();
  files::GgufContents contents;
  add_folder_text(folder, contents.metadata).value();
  contents.sources = folder.sources();
  const auto tokenizer = Tokenizer::from_gguf(files::GgufFile::from_contents(std::move(contents)));
  ASSERT_FALSE(tokenizer);
  EXPECT_THAT(tokenizer.error().message, HasSubstr("tokenizer.model is no file of SentencePiece"));
}

TEST_F(FolderText, ADamagedTokenizerIsTold) {
  write("tokenizer.json", R"({"model": {"type": "Neural"}})");
  const files::HfFolder folder = files::HfFolder::open(folder_.path()).value();
  files::GgufContents contents;
  add_folder_text(folder, contents.metadata).value();
  contents.sources = folder.sources();
  const auto tokenizer = Tokenizer::from_gguf(files::GgufFile::from_contents(std::move(contents)));
  ASSERT_FALSE(tokenizer);
  EXPECT_THAT(tokenizer.error().message, AllOf(HasSubstr("tokenizer.json"), HasSubstr("Neural")));
}

}  // namespace
}  // namespace braid::text
