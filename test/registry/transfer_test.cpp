// What of a pull needs no server: which files are meant, and what of a file is here.
#include "registry/hub_client.h"
#include "registry/partial_file.h"
#include "registry/small_models.h"
#include "support/folder.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace braid::registry {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> chosen(const std::vector<std::string>& paths, const std::string& tag) {
  std::vector<HubFile> files;
  for (const std::string& path : paths) files.push_back({path, 1});
  const auto found = choose_files(files, *ModelRef::parse("hf.co/owner/name" + (tag.empty() ? "" : ":" + tag)));
  if (!found) return {found.error().message};
  std::vector<std::string> names;
  for (const HubFile& file : *found) names.push_back(file.path);
  return names;
}

TEST(HubFiles, TheTagIsAQuantisation) {
  const std::vector<std::string> paths = {
      "README.md", "m-Q8_0.gguf", "m-Q4_K_M.gguf", "m.Q2_K.gguf", "BF16/m-BF16-00001-of-00002.gguf", "BF16/m-BF16-00002-of-00002.gguf"};
  EXPECT_THAT(chosen(paths, ""), ElementsAre("m-Q4_K_M.gguf"));
  EXPECT_THAT(chosen(paths, "q8_0"), ElementsAre("m-Q8_0.gguf"));
  EXPECT_THAT(chosen(paths, "Q2_K"), ElementsAre("m.Q2_K.gguf"));
  EXPECT_THAT(chosen(paths, "bf16"), ElementsAre("BF16/m-BF16-00001-of-00002.gguf", "BF16/m-BF16-00002-of-00002.gguf"));
  EXPECT_THAT(chosen(paths, "Q6_K"), ElementsAre("owner/name has no Q6_K; it has BF16, Q2_K, Q4_K_M, Q8_0"));
}

TEST(HubFiles, AProjectorComesAlong) {
  EXPECT_THAT(chosen({"m-Q4_0.gguf", "mmproj-F16.gguf"}, ""), ElementsAre("m-Q4_0.gguf", "mmproj-F16.gguf"));
}

TEST(HubFiles, WithoutGgufItIsTheFolder) {
  const std::vector<std::string> paths = {
      "README.md", "config.json", "model.safetensors", "tokenizer.json", "1_Pooling/config.json", "onnx/model.onnx", "pytorch_model.bin"};
  EXPECT_THAT(chosen(paths, ""), ElementsAre("config.json", "model.safetensors", "tokenizer.json", "1_Pooling/config.json"));
  EXPECT_THAT(chosen(paths, "Q4_0"), ElementsAre(HasSubstr("no GGUF files")));
  EXPECT_THAT(chosen({"README.md"}, ""), ElementsAre(HasSubstr("neither GGUF files nor a folder of safetensors")));
}

class Partial : public ::testing::Test {
 protected:
  PartialFile open() {
    auto partial = PartialFile::open(blobs_, digest_, bytes_.size(), 100);
    EXPECT_TRUE(partial && *partial);
    return std::move(**partial);
  }

  test::Folder folder_;
  BlobStore blobs_ = *BlobStore::open(folder_ / "blobs");
  std::string bytes_ = std::string(150, 'a') + std::string(100, 'b');
  Digest digest_ = digest_of(bytes_);
};

TEST_F(Partial, GoesOnWhereItWasNoted) {
  {
    PartialFile file = open();
    ASSERT_EQ(file.ranges().size(), 3U);
    ASSERT_TRUE(file.append(1, bytes_.substr(100, 60)));
    ASSERT_TRUE(file.note(1));
    ASSERT_TRUE(file.append(1, bytes_.substr(160, 10)));  // not noted: as if killed now
    ASSERT_TRUE(file.append(2, bytes_.substr(200)));
    ASSERT_TRUE(file.note(2));
  }
  test::write_file(blobs_.partial_path_of(digest_) + ".notes",
                   test::read_file(blobs_.partial_path_of(digest_) + ".notes") + "0 77");  // a line that was not finished
  PartialFile file = open();
  EXPECT_EQ(file.ranges()[0].done, 0U);
  EXPECT_EQ(file.ranges()[1].done, 60U);
  EXPECT_EQ(file.ranges()[2].done, 50U);
  ASSERT_TRUE(file.append(0, bytes_.substr(0, 100)));
  ASSERT_TRUE(file.append(1, bytes_.substr(160, 40)));
  ASSERT_TRUE(file.publish(blobs_, digest_));
  EXPECT_EQ(test::read_file(blobs_.path_of(digest_)), bytes_);
  EXPECT_FALSE(std::filesystem::exists(blobs_.partial_path_of(digest_)));
  EXPECT_FALSE(*PartialFile::open(blobs_, digest_, bytes_.size(), 100));  // it is whole
}

TEST_F(Partial, WrongBytesAreRemoved) {
  PartialFile file = open();
  for (std::size_t i = 0; i < 3; ++i) ASSERT_TRUE(file.append(i, std::string(i < 2 ? 100 : 50, 'x')));
  const Result<void> published = file.publish(blobs_, digest_);
  ASSERT_FALSE(published);
  EXPECT_EQ(published.error().code, ErrorCode::kBadFile);
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "blobs"));
}

TEST_F(Partial, NotesOfAnotherCutCountForNothing) {
  {
    PartialFile file = open();
    ASSERT_TRUE(file.append(0, bytes_.substr(0, 100)));
    ASSERT_TRUE(file.note(0));
  }
  auto other = PartialFile::open(blobs_, digest_, bytes_.size(), 50);
  ASSERT_TRUE(other && *other);
  EXPECT_EQ((*other)->done(), 0U);
}

}  // namespace
}  // namespace braid::registry
