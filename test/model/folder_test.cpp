// Configurations of Hugging Face folders that are wrong, or unknown.
#include "support/folder.h"

#include "files/hf_folder.h"
#include "model/families/families.h"

#include <array>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid::model::test {
namespace {

using testing::HasSubstr;

std::string error_of(const std::string& config, const std::vector<std::string>& tensors = {}) {
  const braid::test::Folder folder;
  std::ofstream(folder / "config.json") << config;
  static constexpr std::array<std::byte, 4> kZero{};
  files::SafeTensors contents;
  for (const std::string& name : tensors) contents.tensors.emplace(name, files::SafeTensor{"F32", {1}, kZero});
  const std::vector<std::byte> bytes = files::write_safetensors(contents);
  std::ofstream(folder / "model.safetensors")
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  const auto read = read_folder(files::HfFolder::open(folder.path()).value());
  return read ? "none" : read.error().message;
}

// A sound configuration but for what is added.
std::string llama_with(const std::string& more) {
  return R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "rms_norm_eps": 1e-5)" +
         (more.empty() ? "" : ", " + more) + "}";
}

TEST(FolderConfigs, ThatAreSoundAreTaken) { EXPECT_EQ(error_of(llama_with("")), "none"); }

TEST(FolderConfigs, TellWhatIsWrong) {
  for (const auto& [config, message] : {
           std::pair<std::string, std::string>{"{", "config.json: is not JSON"},
           {"[]", "config.json: is not a JSON object"},
           {"{}", "names no 'model_type'"},
           {R"({"model_type": "llama"})", "the key num_hidden_layers is missing"},
           {llama_with(R"("max_position_embeddings": -3)"), "max_position_embeddings is -3, expected a whole number from 1 to"},
           {llama_with(R"("head_dim": "wide")"), R"(head_dim is "wide", expected a whole number)"},
           {llama_with(R"("num_key_value_heads": 3)"), "num_key_value_heads is 3, expected a divisor of num_attention_heads = 4"},
           {llama_with(R"("hidden_act": "tanh")"), "the activation is \"tanh\", expected silu"},
           {llama_with(R"("tie_word_embeddings": 1)"), "tie_word_embeddings is 1, expected true or false"},
           {llama_with(R"("rope_scaling": {"type": "cubic"})"), "rope scaling has the type \"cubic\""},
           {llama_with(R"("rope_scaling": {"type": "linear"})"), "the key rope_scaling.factor is missing"},
           {llama_with(R"("rope_parameters": {"rope_type": "longrope", "short_factor": [1]})"), "short_factor is not a list of 8 numbers"},
           {llama_with(R"("rope_theta": 0)"), "rope_theta is 0, expected a number from"},
           {llama_with(R"("sliding_window": 8, "layer_types": ["full_attention"])"), "layer_types has 1 entries for 2 layers"},
           {llama_with(R"("sliding_window": 8, "layer_types": ["full_attention", "mamba"])"), "layer_types names \"mamba\""},
           {llama_with(R"("num_local_experts": 8)"), "num_local_experts is set"},
       })
    EXPECT_THAT(error_of(config), HasSubstr(message)) << config;
}

TEST(FolderConfigs, OfAnUnknownModelNameTheNearest) {
  EXPECT_THAT(error_of(R"({"model_type": "qwen4"})"),
              HasSubstr("model_type is \"qwen4\", which this build does not know; the nearest are qwen"));
  EXPECT_THAT(error_of(R"({"model_type": "t5"})"), HasSubstr("an encoder-decoder"));
  EXPECT_THAT(error_of(R"({"model_type": "x", "text_config": {"model_type": "olmo4"}})"), HasSubstr("the nearest are olmo"));
}

TEST(FolderConfigs, OfAnUnknownModelNameWhatItsLayersHave) {
  const std::vector<std::string> tensors = {"model.embed_tokens.weight",
                                            "model.layers.0.self_attn.q_proj.weight",
                                            "model.layers.0.self_attn.rotary_emb.inv_freq",
                                            "model.layers.0.mlp.up_proj.qweight",
                                            "model.layers.0.mixer.A_log",
                                            "model.layers.11.mixer.A_log",
                                            "model.layers.0.mlp.experts.0.w9.weight",
                                            "model.layers.0.mlp.experts.10.w9.weight"};
  EXPECT_THAT(error_of(R"({"model_type": "openelm"})", tensors),
              testing::EndsWith("; unlike Llama's or GPT's layers its own have mixer.A_log, mlp.experts.*.w9"));
  EXPECT_THAT(error_of(R"({"model_type": "openelm"})"), testing::Not(HasSubstr("its own have")));
  std::vector<std::string> many;
  for (const char c : std::string("abcdefghij")) many.push_back("layers.0." + std::string(3, c));
  many.push_back("layers.0.a" + std::string(1000, 'x'));
  EXPECT_THAT(error_of(R"({"model_type": "openelm"})", many), testing::EndsWith("hhh and 2 more"));
  const std::vector<std::string> seeing = {"model.language_model.layers.0.ttt.weight", "model.visual.layers.0.vvv.weight"};
  EXPECT_THAT(error_of(R"({"model_type": "x", "text_config": {"model_type": "y"}})", seeing), testing::EndsWith("its own have ttt"));
}

}  // namespace
}  // namespace braid::model::test
