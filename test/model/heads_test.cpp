// A model's own head for tokens further on guesses for it: whatever it guesses, answers are the same bits; and it guesses right where it was
// made to agree.
#include "model/adapter_models.h"
#include "model/folder_models.h"
#include "model/model_with_head.h"
#include "model/verified_rows.h"

#include <fmt/format.h>
#include <random>

namespace braid::model::test {
namespace {

using Floats = ModelWithHead::Floats;

class Heads : public VerifiedRows, public testing::WithParamInterface<std::string> {
 protected:
  static LoadOptions with_heads(int threads = 1) {
    return {.threads = threads, .state_drafts = 5, .end_tokens = {}, .progress = {}, .heads = true};
  }
};

TEST_P(Heads, ChangeNoBitOfAnAnswer) {
  const files::GgufFile file = ModelWithHead(GetParam()).file();
  const SamplingParams ways[] = {{.temperature = 0.0F, .top_logprobs = 2}, {.temperature = 1.0F, .seed = 3, .top_logprobs = 1}};
  for (const SamplingParams& sampling : ways) {
    const Said plain = answer(*load_from(file, {.end_tokens = {}, .progress = {}}), sampling, 0);
    for (const int threads : {1, 3}) {
      const auto model = load_from(file, with_heads(threads));
      ASSERT_TRUE(model->has_heads());
      const Said guessed = answer(*model, sampling, 5, DraftMethod::kMtp);
      EXPECT_TRUE(guessed == plain) << threads << " threads";
      EXPECT_GT(guessed.drafted, 0) << "it guesses";
      EXPECT_TRUE(answer(*model, sampling, 5, DraftMethod::kNgram) == plain) << "and does not where nobody asks it";
    }
  }
}

// A model whose next token follows from the last one alone, and a head that reads just that.
TEST_P(Heads, GuessRightWhereTheyAgree) {
  ModelWithHead made(GetParam());
  made.silence();
  const auto width = static_cast<std::size_t>(made.embedding());
  std::mt19937 random(5);
  Floats signs(static_cast<std::size_t>(made.vocab()) * width);
  for (float& sign : signs) sign = random() % 2 == 0 ? 1.0F : -1.0F;
  made.put("token_embd.weight", {made.embedding(), made.vocab()}, signs);
  Floats output(signs.size());
  std::normal_distribution<float> draw;
  for (float& value : output) value = draw(random);
  made.put("output.weight", {made.embedding(), made.vocab()}, output);
  Floats join(2 * width * width, 0.0F);
  for (std::size_t i = 0; i < width; ++i) join[i * 2 * width + i] = 1.0F;  // the token's half
  made.join(join);
  LoadOptions exact = with_heads();
  exact.packing.float_type = kernels::WeightType::kF32;
  LoadOptions without = exact;
  without.heads = false;
  for (const float temperature : {0.0F, 0.7F}) {
    const SamplingParams sampling{.temperature = temperature, .seed = 11, .top_logprobs = 0};
    const Said plain = answer(*load_from(made.file(), without), sampling, 0);
    const Said guessed = answer(*load_from(made.file(), exact), sampling, 5, DraftMethod::kMtp);
    EXPECT_TRUE(guessed == plain);
    EXPECT_LE(guessed.steps, 1 + (kTokens - 1 + 5) / 6 + 1) << "six tokens a step, drawn with the same seeds";
  }
}

// The other half: hidden states are heard at their places. Each token is foretold again and again, and so the head foretells the last one.
TEST_P(Heads, ReadHiddenStates) {
  ModelWithHead made(GetParam());
  made.silence();
  const auto width = static_cast<std::size_t>(made.embedding());
  std::mt19937 random(5);
  Floats signs(static_cast<std::size_t>(made.vocab()) * width);
  for (float& sign : signs) sign = random() % 2 == 0 ? 1.0F : -1.0F;
  made.put("token_embd.weight", {made.embedding(), made.vocab()}, signs);
  made.put("output.weight", {made.embedding(), made.vocab()}, signs);
  Floats join(2 * width * width, 0.0F);
  for (std::size_t i = 0; i < width; ++i) join[i * 2 * width + width + i] = 1.0F;  // the hidden state's
  made.join(join);
  LoadOptions exact = with_heads();
  exact.packing.float_type = kernels::WeightType::kF32;
  const Said guessed = answer(*load_from(made.file(), exact), {.temperature = 0.0F}, 5, DraftMethod::kMtp);
  EXPECT_LE(guessed.steps, 1 + (kTokens - 1 + 5) / 6 + 1);
}

INSTANTIATE_TEST_SUITE_P(Models, Heads, testing::Values("glm4-moe", "deepseek-v3", "qwen3.5", "qwen3-next"), folder_test_name);

// As their makers name them.
class HeadsOfFolders : public VerifiedRows, public testing::WithParamInterface<std::string> {};

TEST_P(HeadsOfFolders, AreFound) {
  const auto source = files::HfFolder::open(folder_path(GetParam())).value();
  const bool is_qwen = GetParam().starts_with("qwen");
  adapting::Tensors tensors;
  int attends = 0;
  int layers = 0;
  for (const auto& [name, tensor] : source.tensors()) {
    tensors.add(name, tensor);
    if (!name.starts_with("model.layers.")) continue;
    const int layer = std::stoi(name.substr(13));
    layers = std::max(layers, layer + 1);
    if (name.ends_with(".self_attn.o_proj.weight")) attends = std::max(attends, layer);
  }
  const std::string copied = fmt::format("model.layers.{}.", attends);
  const std::string behind = is_qwen ? "mtp.layers.0." : fmt::format("model.layers.{}.", layers);
  for (const auto& [name, tensor] : source.tensors())
    if (name.starts_with(copied)) tensors.add(behind + name.substr(copied.size()), tensor);
  const std::int64_t width = source.tensors().at("model.norm.weight").shape.front();
  std::mt19937 random(3);
  const std::pair<std::string, std::vector<std::int64_t>> own[] = {
      {is_qwen ? "mtp.fc.weight" : behind + "eh_proj.weight", {width, 2 * width}},
      {is_qwen ? "mtp.pre_fc_norm_embedding.weight" : behind + "enorm.weight", {width}},
      {is_qwen ? "mtp.pre_fc_norm_hidden.weight" : behind + "hnorm.weight", {width}},
      {is_qwen ? "mtp.norm.weight" : behind + "shared_head.norm.weight", {width}}};
  for (const auto& [name, shape] : own) tensors.add(name, adapting::random_values(random, shape, 0.2F));
  if (!is_qwen) tensors.add(behind + "embed_tokens.weight", source.tensors().at("model.embed_tokens.weight"));
  const braid::test::Folder folder;
  const auto write = [&] {
    std::ofstream(folder / "config.json") << source.config();
    adapting::write_file(folder / "model.safetensors", tensors.file());
    return files::GgufFile::from_contents(read_folder(files::HfFolder::open(folder.path()).value()).value());
  };
  const SamplingParams sampling{.temperature = 0.7F, .seed = 3, .top_logprobs = 1};
  const Said plain = answer(*load_from(open_folder_model(GetParam()), {.end_tokens = {}, .progress = {}}), sampling, 0);
  const LoadOptions wanted{.state_drafts = 5, .end_tokens = {}, .progress = {}, .heads = true};
  const auto model = load_from(write(), wanted);
  ASSERT_TRUE(model->has_heads());
  const Said guessed = answer(*model, sampling, 5, DraftMethod::kMtp);
  EXPECT_TRUE(guessed == plain);
  EXPECT_GT(guessed.drafted, 0);
  EXPECT_TRUE(answer(*load_from(write(), {.end_tokens = {}, .progress = {}}), sampling, 0) == plain) << "where nobody wants it";
  tensors.remove(own[2].first);
  const auto without = load_from(write(), wanted);
  EXPECT_FALSE(without->has_heads()) << "a part is missing";
  EXPECT_TRUE(answer(*without, sampling, 0) == plain);
}

INSTANTIATE_TEST_SUITE_P(Models, HeadsOfFolders, testing::Values("glm4-moe", "deepseek-v3", "qwen3.5", "qwen3.5-moe", "qwen3-next"),
                         folder_test_name);

TEST(HeadsOfFiles, AreLeftOutWhereNobodyWantsThem) {
  const files::GgufFile file = ModelWithHead("glm4-moe").file();
  const auto model = load_from(file, {.end_tokens = {}, .progress = {}});
  EXPECT_FALSE(model->has_heads());
  const auto estimate = [&](bool heads) {
    return estimate_memory(file, kernels::best_kernel_table(), {.end_tokens = {}, .progress = {}, .heads = heads}).value();
  };
  EXPECT_GT(estimate(true).workspace, estimate(false).workspace);
  EXPECT_GT(estimate(true).weights, estimate(false).weights);
  EXPECT_EQ(model->weight_bytes(), estimate(false).weights);
}

}  // namespace
}  // namespace braid::model::test
