#include "files/hf_folder.h"

#include "support/folder.h"

#include <cstring>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid::files {
namespace {

using testing::HasSubstr;

void write(const std::string& path, std::string_view text) { std::ofstream(path, std::ios::binary) << text; }

// A file of one tensor of two floats.
void write_tensor(const std::string& path, const std::string& name) {
  const float values[] = {1.0F, 2.0F};
  SafeTensors contents;
  contents.tensors[name] = {"F32", {2}, std::as_bytes(std::span(values))};
  const std::vector<std::byte> bytes = write_safetensors(contents);
  write(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::string error_of(const std::string& path) {
  const auto folder = HfFolder::open(path);
  return folder ? "none" : folder.error().message;
}

class HfFolderTest : public testing::Test {
 protected:
  HfFolderTest() { write(folder / "config.json", R"({"model_type": "llama"})"); }
  braid::test::Folder folder;
};

TEST_F(HfFolderTest, ReadsOneFileOfWeights) {
  write_tensor(folder / "model.safetensors", "a");
  const HfFolder read = HfFolder::open(folder.path() + "/").value();
  EXPECT_EQ(read.path(), folder.path());
  EXPECT_THAT(read.config(), HasSubstr("llama"));
  ASSERT_EQ(read.tensors().size(), 1U);
  float second = 0.0F;
  std::memcpy(&second, read.tensors().at("a").bytes.data() + 4, 4);
  EXPECT_EQ(second, 2.0F);
  EXPECT_FALSE(read.text("tokenizer.json").value());
  write(folder / "tokenizer.json", "{}");
  EXPECT_EQ(*read.text("tokenizer.json").value(), "{}");
}

TEST_F(HfFolderTest, ReadsWhatPythonWrites) {
  write(folder / "config.json", R"({"time_step_limit": [0.0, Infinity]})");
  write(folder / "tokenizer_config.json", R"({"model_max_length": 1000000000000000019884624838656})");
  write(folder / "merges.txt", "1000000000000000019884624838656");
  write_tensor(folder / "model.safetensors", "a");
  const HfFolder read = HfFolder::open(folder.path()).value();
  EXPECT_EQ(read.config(), R"({"time_step_limit": [0.0, 1e308]})");
  EXPECT_EQ(*read.text("tokenizer_config.json").value(), R"({"model_max_length": 1000000000000000019884624838656e0})");
  EXPECT_EQ(*read.text("merges.txt").value(), "1000000000000000019884624838656") << "no JSON";
}

TEST_F(HfFolderTest, ReadsTheShardsThatTheIndexNames) {
  write_tensor(folder / "one.safetensors", "a");
  write_tensor(folder / "two.safetensors", "b");
  write(folder / "model.safetensors.index.json", R"({"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}})");
  const HfFolder read = HfFolder::open(folder.path()).value();
  EXPECT_EQ(read.tensors().size(), 2U);
  EXPECT_EQ(read.sources().size(), 2U);
}

TEST_F(HfFolderTest, TellsWhatIsWrongWithAnIndex) {
  const std::string index = folder / "model.safetensors.index.json";
  write_tensor(folder / "one.safetensors", "a");
  write_tensor(folder / "two.safetensors", "a");
  for (const auto& [text, message] : {
           std::pair{"[", "found no object 'weight_map'"},
           std::pair{R"({"weight_map": {}})", "'weight_map' is empty"},
           std::pair{R"({"weight_map": {"a": 7}})", "the file of 'a' is not the name of one in this folder"},
           std::pair{R"({"weight_map": {"a": "../one.safetensors"}})", "is not the name of one in this folder"},
           std::pair{R"({"weight_map": {"a": "three.safetensors"}})", "names the file 'three.safetensors', which is missing"},
           std::pair{R"({"weight_map": {"b": "one.safetensors"}})", "'b' is to be in 'one.safetensors', where it is not"},
           std::pair{R"({"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}})", "the tensor 'a' is in another file too"},
       }) {
    write(index, text);
    EXPECT_THAT(error_of(folder.path()), HasSubstr(message)) << text;
  }
}

TEST_F(HfFolderTest, TellsWhatAFolderIsThatIsNoModel) {
  EXPECT_THAT(error_of(folder.path()), HasSubstr("neither model.safetensors nor"));
  write(folder / "adapter_config.json", "{}");
  EXPECT_THAT(error_of(folder.path()), HasSubstr("holds an adapter"));
  write(folder / "pytorch_model.bin", "PK");
  EXPECT_THAT(error_of(folder.path()), HasSubstr("save the model as safetensors"));
  const braid::test::Folder empty;
  EXPECT_THAT(error_of(empty.path()), HasSubstr("without config.json"));
}

TEST_F(HfFolderTest, TellsWhatIsWrongWithAHeader) {
  const std::string file = folder / "model.safetensors";
  write_tensor(file, "a");
  std::ifstream in(file, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  for (std::size_t size = 0; size < whole.size(); size += 5) {
    write(file, std::string_view(whole).substr(0, size));
    EXPECT_THAT(error_of(folder.path()), HasSubstr("model.safetensors: safetensors: ")) << size;
  }
}

}  // namespace
}  // namespace braid::files
