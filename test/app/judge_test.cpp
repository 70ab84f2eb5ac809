// By what a model is known for one that judges, and what a head for classes says of itself.
#include "app/judge.h"

#include "app/encoder_folder.h"
#include "files/hf_folder.h"
#include "text/folder_text.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace braid::app {
namespace {

using Metadata = std::vector<std::pair<std::string, files::GgufValue>>;

struct Judges : testing::Test {
  const files::HfFolder folder = files::HfFolder::open(BRAID_SOURCE_DIR "/test/model/reference/encoders/qwen3-reranker").value();
  const std::unique_ptr<const text::ModelCodec> codec = text::ModelCodec::from_gguf(file_of({})).value();
  const std::string path = testing::TempDir() + "judge_" + std::to_string(getpid());

  Judges() { std::filesystem::create_directory(path); }
  ~Judges() override { std::filesystem::remove_all(path); }

  files::GgufFile file_of(Metadata metadata, std::vector<files::GgufTensor> tensors = {}) const {
    files::GgufContents contents;
    contents.sources = folder.sources();
    contents.metadata = std::move(metadata);
    contents.tensors = std::move(tensors);
    EXPECT_TRUE(text::add_folder_text(folder, contents.metadata));
    return files::GgufFile::from_contents(std::move(contents));
  }
  bool is_known(Metadata metadata, const std::string& id = "model", const std::string& architecture = "qwen3") const {
    metadata.emplace_back("general.architecture", architecture);
    return judging_of(id, "model.gguf", file_of(std::move(metadata)), *codec).has_value();
  }
  bool is_known_by(const std::string& name, const std::string& text, const std::string& architecture = "qwen3") const {
    std::ofstream(path + "/" + name) << text;
    const bool known = judging_of("model", path, file_of({{"general.architecture", architecture}}), *codec).has_value();
    std::filesystem::remove(path + "/" + name);
    return known;
  }
};

TEST_F(Judges, AreKnownByTheirNamesTagsAndTemplates) {
  EXPECT_FALSE(is_known({}));
  EXPECT_TRUE(is_known({}, "Qwen3-Reranker-0.6B"));
  EXPECT_TRUE(is_known({{"general.name", "Qwen3 Reranker 0.6B Qwen3-Reranker"}}));
  EXPECT_TRUE(is_known({{"general.base_model.0.name", "Qwen3-Reranker-4B"}}));
  EXPECT_TRUE(is_known({{"general.tags", files::GgufArray{std::vector<std::string>{"transformers", "text-ranking"}}}}));
  EXPECT_FALSE(is_known({{"general.tags", files::GgufArray{std::vector<std::string>{"transformers", "text-generation"}}}}));
  EXPECT_TRUE(is_known({{"tokenizer.chat_template.rerank", "{{ query }}"}}));
  EXPECT_TRUE(is_known({{"tokenizer.chat_template", "Judge whether the Document meets the requirements: {{ messages }}"}}));
  EXPECT_FALSE(is_known({{"tokenizer.chat_template", "{{ messages }}"}}));
  EXPECT_FALSE(is_known({}, "mxbai-reranker", "qwen2")) << "it has another prompt";
  EXPECT_FALSE(is_known({{"general.tags", files::GgufArray{std::vector<std::string>{"text-ranking"}}}}, "model", "gemma"));
}

TEST_F(Judges, AreKnownByTheirFolders) {
  EXPECT_FALSE(is_known_by("config.json", R"({"architectures":["Qwen3ForCausalLM"]})"));
  EXPECT_TRUE(is_known_by("config.json", R"({"is_original_qwen3_reranker":true})"));
  EXPECT_TRUE(is_known_by("config.json", R"({"classifier_from_token":["no","yes"]})"));
  EXPECT_TRUE(is_known_by("config.json", R"({"_name_or_path":"Qwen/Qwen3-Reranker-0.6B"})"));
  EXPECT_TRUE(is_known_by("config_sentence_transformers.json", R"({"model_type":"CrossEncoder"})"));
  EXPECT_FALSE(is_known_by("config_sentence_transformers.json", R"({"model_type":"SentenceTransformer"})"));
  EXPECT_TRUE(is_known_by("modules.json", R"([{"type":"sentence_transformers.cross_encoder.modules.LogitScore"}])"));
  EXPECT_TRUE(is_known_by("README.md", "---\nlicense: mit\npipeline_tag: text-ranking\n---\nA model.\n"));
  EXPECT_FALSE(is_known_by("README.md", "---\npipeline_tag: text-ranking\n---\nAnother prompt.\n", "qwen2"));
  EXPECT_FALSE(is_known_by("README.md", "---\nlicense: mit\n---\nNo pipeline_tag: text-ranking\n"));
}

// What llama.cpp's converter makes of one; a head of other classes is a classifier's.
TEST_F(Judges, MayHaveTheTwoWordsAsAHead) {
  const auto known = [&](std::vector<std::string> labels, std::int64_t classes) {
    files::GgufTensor head;
    head.name = "cls.output.weight";
    head.shape = {32, classes};
    const Metadata metadata = {{"general.architecture", "qwen3"},
                               {"general.name", "Qwen3 Reranker"},
                               {"qwen3.classifier.output_labels", files::GgufArray{std::move(labels)}}};
    return judging_of("model", "model.gguf", file_of(metadata, {head}), *codec);
  };
  EXPECT_EQ(known({"yes", "no"}, 2)->head_has_yes_first, true);
  EXPECT_EQ(known({"no", "yes"}, 2)->head_has_yes_first, false);
  EXPECT_FALSE(known({"good", "bad"}, 2));
  EXPECT_FALSE(known({"yes", "no"}, 3));
}

TEST(ClassRules, SayTheModelsOwnActivation) {
  const ClassRules plain = class_rules("{}", 1);
  EXPECT_EQ(plain.activation, ScoreActivation::kSigmoid);
  EXPECT_EQ(plain.relevance, ScoreActivation::kSigmoid);
  EXPECT_EQ(class_rules("{}", 3).activation, ScoreActivation::kSoftmax);
  EXPECT_EQ(class_rules(R"({"problem_type":"regression"})", 1).activation, ScoreActivation::kNone);
  EXPECT_EQ(class_rules(R"({"problem_type":"multi_label_classification"})", 3).activation, ScoreActivation::kSigmoid);
  EXPECT_EQ(class_rules(R"({"sentence_transformers":{"activation_fn":"torch.nn.modules.linear.Identity"}})", 1).relevance,
            ScoreActivation::kNone);
  EXPECT_EQ(class_rules(R"({"sbert_ce_default_activation_function":"torch.nn.modules.linear.Identity"})", 1).relevance,
            ScoreActivation::kNone);
  EXPECT_EQ(class_rules(R"({"sentence_transformers":{"activation_fn":"torch.nn.modules.activation.Sigmoid"}})", 1).relevance,
            ScoreActivation::kSigmoid);
  EXPECT_EQ(class_rules(R"({"id2label":{"0":"good","1":"bad"}})", 2).labels, (std::vector<std::string>{"good", "bad"}));
  EXPECT_FALSE(class_rules("{}", 0));
}

}  // namespace
}  // namespace braid::app
