// Configurations of Hugging Face folders that are wrong, or unknown.
#include "support/folder.h"

#include "files/hf_folder.h"
#include "model/families/families.h"

#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid::model::test {
namespace {

using testing::HasSubstr;

std::string error_of(const std::string& config) {
  const braid::test::Folder folder;
  std::ofstream(folder / "config.json") << config;
  const std::vector<std::byte> bytes = files::write_safetensors({});
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

}  // namespace
}  // namespace braid::model::test
