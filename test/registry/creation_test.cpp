// Models made from others and from uploaded files.
#include "registry/creation.h"

#include "registry/settings.h"
#include "registry/small_models.h"
#include "support/folder.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid::registry {
namespace {

namespace fs = std::filesystem;
using test::open_library;
using test::small_gguf;
using test::write_file;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const ProgressSink kUnheard = [](const TransferProgress&) { return true; };

class Creating : public ::testing::Test {
 protected:
  Creating() : library_(open_library(folder_ / "data")) {
    library_->publish(*ModelRef::parse("base"), test::manifest_of(*library_, small_gguf(), "Be brief.")).value();
  }

  Result<void> create(const ModelRecipe& recipe) { return create_model(*library_, tools_, recipe, kUnheard); }
  ModelSettings settings_of(const std::string& name) { return *read_settings(*library_->find(name)); }
  std::string sentence(const ModelRecipe& recipe) {
    const Result<void> made = create(recipe);
    return made ? "made" : made.error().message;
  }

  test::Folder folder_;
  std::unique_ptr<Library> library_;
  WeightTools tools_;
};

TEST_F(Creating, WhatIsNotSaidIsThatOfTheOther) {
  ModelRecipe first{.model = "first", .from = "base"};
  first.settings.parameters = {{"temperature", 0.5}, {"stop", ValueList{"x"}}};
  first.settings.template_text = "{{ .Prompt }}";
  first.settings.licences = {"free"};
  ASSERT_TRUE(create(first));
  ModelRecipe second{.model = "second", .from = "first"};
  second.settings.parameters = {{"temperature", 0.25}};
  second.settings.messages = {ValueDict{{"role", "user"}, {"content", "hello"}}};
  ASSERT_TRUE(create(second));
  const ModelSettings made = settings_of("second");
  EXPECT_EQ(made.system, "Be brief.");
  EXPECT_EQ(made.template_text, "{{ .Prompt }}");
  EXPECT_EQ(made.parameters, (ValueDict{{"temperature", 0.25}, {"stop", ValueList{"x"}}}));
  EXPECT_EQ(made.messages.size(), 1U);
  EXPECT_THAT(made.licences, ElementsAre("free"));
  const auto entry = library_->find("second");
  EXPECT_EQ(entry->model.parent, "first:latest");
  EXPECT_EQ(entry->model.source, "created");
  EXPECT_EQ(entry->model.path, library_->find("base")->model.path);  // the weights are there once
}

TEST_F(Creating, AnEmptySystemPromptIsMeantWhereItIsSaid) {
  ASSERT_TRUE(create({.model = "silent", .from = "base", .clears_system = true}));
  EXPECT_EQ(settings_of("silent").system, "");
}

TEST_F(Creating, FromANameThatIsNotHereNothingIsMade) {
  EXPECT_THAT(sentence({.model = "new", .from = "bose"}), HasSubstr("model 'bose' not found; there is base:latest; nothing is downloaded"));
  EXPECT_THAT(sentence({.model = "new"}), HasSubstr("give one of the two"));
  EXPECT_THAT(sentence({.model = "../new", .from = "base"}), HasSubstr("is no name of a model"));
  ModelRecipe wrong{.model = "new", .from = "base"};
  wrong.settings.parameters = {{"stop", ValueDict{}}};
  EXPECT_THAT(sentence(wrong), HasSubstr("the parameter 'stop'"));
  EXPECT_FALSE(library_->find("new"));
}

TEST_F(Creating, UploadedFilesBecomeAModel) {
  const std::string digest = library_->blobs().put(small_gguf(80))->text();
  ASSERT_TRUE(create({.model = "up", .files = {{"model.gguf", digest}}}));
  EXPECT_EQ(library_->find("up")->model.facts.parameters, 80);
  const std::string text = library_->blobs().put("this is no model")->text();
  EXPECT_THAT(sentence({.model = "x", .files = {{"m.gguf", text}}}), HasSubstr("m.gguf is no GGUF file"));
  EXPECT_THAT(sentence({.model = "x", .files = {{"m.gguf", "sha256:" + std::string(64, '0')}}}), HasSubstr("has not been uploaded"));
  EXPECT_THAT(sentence({.model = "x", .files = {{"../m.gguf", digest}}}), HasSubstr("is no plain name"));
  EXPECT_THAT(sentence({.model = "x", .files = {{"m.gguf", "sha256:/etc/passwd"}}}), HasSubstr("is no digest"));
}

TEST_F(Creating, AdaptersStayWithTheWeights) {
  const auto put = [this](const std::string& bytes) { return library_->blobs().put(bytes)->text(); };
  const std::string gguf = put(small_gguf(32));
  const std::string config = put("{}");
  const std::string tensors = put("tensors");
  ASSERT_TRUE(create({.model = "one", .from = "base", .adapters = {{"a.gguf", gguf}}}));
  EXPECT_THAT(settings_of("one").adapters, ElementsAre(library_->blobs().path_of(*Digest::parse(gguf))));
  const ModelRecipe::Files peft = {{"adapter_config.json", config}, {"adapter_model.safetensors", tensors}};
  ASSERT_TRUE(create({.model = "two", .from = "one", .adapters = peft}));
  ASSERT_EQ(settings_of("two").adapters.size(), 2U);
  EXPECT_EQ(test::read_file(settings_of("two").adapters.back() + "/adapter_model.safetensors"), "tensors");
  tools_.quantize = [](const std::string&, const std::string& to, const std::string&, const auto&) -> Result<void> {
    write_file(to, small_gguf(16));
    return {};
  };
  ASSERT_TRUE(create({.model = "small", .from = "two", .quantize = "q8_0"}));
  EXPECT_EQ(settings_of("small").adapters.size(), 2U);
  EXPECT_EQ(library_->find("small")->model.facts.parameters, 16);

  const auto refused = [this](ModelRecipe::Files adapters, const char* from = "base") {
    return sentence({.model = "x", .from = from, .adapters = std::move(adapters)});
  };
  EXPECT_THAT(refused({{"a.gguf", "sha256:" + std::string(64, '0')}}), HasSubstr("has not been uploaded"));
  EXPECT_THAT(refused({{"a.bin", config}}), HasSubstr("a.bin is no adapter"));
  EXPECT_THAT(refused({{"adapter_config.json", config}}), HasSubstr("has two files"));
  EXPECT_THAT(refused(peft, "two"), HasSubstr("one adapter in PEFT's form at most"));
  EXPECT_FALSE(library_->find("x"));
}

TEST_F(Creating, AFileOfAWatchedFolderIsCopied) {
  const test::Folder models;
  write_file(models / "found.gguf", small_gguf(112));
  const auto library = open_library(folder_ / "data", {models.path()});
  ASSERT_TRUE(create_model(*library, tools_, {.model = "own", .from = "found"}, kUnheard));
  fs::remove(models / "found.gguf");
  ASSERT_TRUE(library->refresh());
  EXPECT_EQ(library->find("own")->model.facts.parameters, 112);
  EXPECT_FALSE(library->find("found"));
}

TEST_F(Creating, WeightsAreRoundedByTheTool) {
  std::string asked;
  tools_.quantize = [&](const std::string& from, const std::string& to, const std::string& type, const auto& go_on) -> Result<void> {
    asked = type;
    EXPECT_EQ(test::read_file(from), small_gguf());
    EXPECT_TRUE(go_on(1, 2));
    write_file(to, small_gguf(16));
    return {};
  };
  ASSERT_TRUE(create({.model = "small", .from = "base", .quantize = "Q4_K_M"}));
  EXPECT_EQ(asked, "q4_k_m");
  EXPECT_EQ(library_->find("small")->model.facts.parameters, 16);
  EXPECT_EQ(settings_of("small").system, "Be brief.");
  tools_.quantize = [](const std::string&, const std::string&, const std::string&, const auto&) -> Result<void> {
    return invalid_argument("no such type");
  };
  EXPECT_EQ(sentence({.model = "smaller", .from = "base", .quantize = "q0"}), "no such type");
  for (const auto& entry : fs::directory_iterator(folder_ / "data/blobs"))
    EXPECT_FALSE(entry.path().filename().string().starts_with('.')) << "a draft is left";
}

TEST_F(Creating, EndsWhereNobodyWantsItAnyMore) {
  const Result<void> made = create_model(*library_, tools_, {.model = "never", .from = "base"},
                                         [](const TransferProgress& progress) { return progress.status != "writing manifest"; });
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kCancelled);
  EXPECT_FALSE(library_->find("never"));
}

}  // namespace
}  // namespace braid::registry
