// Names, digests and manifests that come from outside.
#include "registry/digest.h"
#include "registry/manifest.h"
#include "registry/model_ref.h"
#include "registry/nearest_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace braid::registry {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string text_of(const std::string& name) {
  const auto ref = ModelRef::parse(name);
  return ref ? ref->text() : "refused";
}

TEST(ModelRef, LeavesOutWhatIsUsual) {
  EXPECT_EQ(text_of("llama3.2"), "llama3.2:latest");
  EXPECT_EQ(text_of("llama3.2:1b"), "llama3.2:1b");
  EXPECT_EQ(text_of("library/llama3.2"), "llama3.2:latest");
  EXPECT_EQ(text_of("somebody/model:Q4_K_M"), "somebody/model:Q4_K_M");
  EXPECT_EQ(text_of("hf.co/owner/Name-GGUF:Q8_0"), "hf.co/owner/Name-GGUF:Q8_0");
  EXPECT_EQ(text_of("huggingface.co/owner/name"), "hf.co/owner/name:latest");
  EXPECT_EQ(text_of("localhost:5000/library/model"), "localhost:5000/library/model:latest");
  EXPECT_EQ(text_of("http://localhost:5000/a/b:c"), "localhost:5000/a/b:c");
  EXPECT_EQ(ModelRef::parse("http://localhost:5000/a/b:c")->scheme, "http");
  EXPECT_EQ(ModelRef::parse("a/b:c")->path(), "registry.ollama.ai/a/b/c");
}

TEST(ModelRef, TakesNoNameThatLeavesItsFolder) {
  for (const char* name :
       {"",         "..",      "../x",    "a/../b", "a//b", "/a",   "a/", ".hidden",       "a/.b/c",         "a:..",
        "a:",       "a:b/c:d", "a/b/c/d", "a b",    "a\nb", "a\\b", "-x", "host:port/a/b", "x:99999999/a/b", "ftp://h/a/b",
        "http://h", "a:b:c",   "\xC3\xA4"})
    EXPECT_EQ(text_of(name), "refused") << name;
  EXPECT_EQ(text_of(std::string(97, 'a')), "refused");
  EXPECT_EQ(text_of(std::string(1, '\0')), "refused");
}

TEST(ModelRef, NamesOfFilesBecomeParts) {
  EXPECT_EQ(name_part_from("Qwen3 0.6B (Q8)"), "Qwen3-0.6B--Q8-");
  EXPECT_EQ(name_part_from("-x"), "_-x");
  EXPECT_TRUE(is_name_part(name_part_from("...")));
  EXPECT_TRUE(is_name_part(name_part_from(std::string(300, '-'))));
}

TEST(NearestNames, AreExactOrOfAnyTagOrBeginAlike) {
  const std::vector<std::string> names = {"llama3:8b", "llama3:latest", "qwen3:0.6b", "qwen3:4b", "mine/only:x"};
  EXPECT_THAT(names_meant("LLAMA3", names), ElementsAre("llama3:latest"));
  EXPECT_THAT(names_meant("qwen3", names), ElementsAre("qwen3:0.6b", "qwen3:4b"));
  EXPECT_THAT(names_meant("mine/o", names), ElementsAre("mine/only:x"));
  EXPECT_THAT(names_meant("qwen3:0", names), ElementsAre("qwen3:0.6b"));
  EXPECT_THAT(names_meant("gemma", names), IsEmpty());
  EXPECT_THAT(nearest_names("lama3", names, 2), ElementsAre("llama3:8b", "llama3:latest"));
  EXPECT_THAT(nearest_names("something-else", names, 3), IsEmpty());
}

TEST(Digest, IsSixtyFourSmallDigits) {
  const std::string digits(64, 'a');
  EXPECT_EQ(Digest::parse("sha256:" + digits)->file_name(), "sha256-" + digits);
  EXPECT_EQ(Digest::parse("sha256-" + digits)->text(), "sha256:" + digits);
  for (const std::string& text : {std::string(), digits, "sha256:" + digits + "a", "sha256:" + digits.substr(1), "sha512:" + digits,
                                  "sha256:" + std::string(64, 'A'), "sha256:../" + digits.substr(3), "sha256/" + digits})
    EXPECT_FALSE(Digest::parse(text)) << text;
  EXPECT_EQ(digest_of("abc").digits(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

std::string manifest(const std::string& layer, const std::string& version = "2") {
  const std::string digest = "sha256:" + std::string(64, 'b');
  return R"({"schemaVersion":)" + version + R"(,"config":{"mediaType":"c","digest":")" + digest + R"(","size":2},"layers":[)" + layer +
         "]}";
}

TEST(Manifest, ReadsWhatItWrites) {
  const std::string digest = "sha256:" + std::string(64, 'a');
  const auto read =
      parse_manifest(manifest(R"({"mediaType":"application/vnd.ollama.image.model","digest":")" + digest + R"(","size":7})"), "x");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->bytes(), 9U);
  ASSERT_NE(read->find(layer::kModel), nullptr);
  EXPECT_EQ(read->find(layer::kTemplate), nullptr);
  const auto again = parse_manifest(write_manifest(*read), "x");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->find(layer::kModel)->digest.text(), digest);
}

TEST(Manifest, RefusesWhatDoesNotHold) {
  const std::string digest = R"("digest":"sha256:)" + std::string(64, 'a') + R"(")";
  for (const std::string& layer : {std::string("{}"), "{" + digest + R"(,"size":1})", R"({"mediaType":"m",)" + digest + "}",
                                   R"({"mediaType":"m",)" + digest + R"(,"size":-1})", R"({"mediaType":"m",)" + digest + R"(,"size":1e99})",
                                   R"({"mediaType":"m",)" + digest + R"(,"size":9223372036854775807})",
                                   std::string(R"({"mediaType":"m","digest":"sha256:../../etc/passwd","size":1})"), std::string("7"),
                                   R"({"mediaType":"application/vnd.ollama.image.file","name":"../x",)" + digest + R"(,"size":1})",
                                   R"({"mediaType":"application/vnd.ollama.image.file","name":"a/b/c/d",)" + digest + R"(,"size":1})"}) {
    const auto read = parse_manifest(manifest(layer), "x");
    ASSERT_FALSE(read) << layer;
    EXPECT_THAT(read.error().message, HasSubstr("the manifest of x"));
  }
  EXPECT_FALSE(parse_manifest(manifest("", "1"), "x"));
  EXPECT_FALSE(parse_manifest("[]", "x"));
  EXPECT_FALSE(parse_manifest("{", "x"));
  EXPECT_FALSE(parse_manifest(std::string(5000, '['), "x"));
}

TEST(Manifest, NamesOfFilesArePlain) {
  for (const char* name : {"config.json", "1_Pooling/config.json", "model-00001-of-00002.safetensors"})
    EXPECT_TRUE(is_file_name(name)) << name;
  for (const char* name : {"", "/etc/passwd", "../x", "a/../b", "a//b", ".git", "a/", "a\\b", "a/b/c/d"})
    EXPECT_FALSE(is_file_name(name)) << name;
}

}  // namespace
}  // namespace braid::registry
