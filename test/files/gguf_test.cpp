#include "files/gguf.h"

#include "support/gguf_writer.h"
#include "support/test_data.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <unistd.h>

namespace braid::files {
namespace {

using braid::test::GgufWriter;
using braid::test::OwnedBytes;
using testing::AllOf;
using testing::HasSubstr;

constexpr float kFour[] = {1, 2, 3, 4};

template <class T>
std::vector<std::byte> raw(std::initializer_list<T> values) {
  const auto bytes = std::as_bytes(std::span(values.begin(), values.size()));
  return {bytes.begin(), bytes.end()};
}

std::string error_of(const Result<GgufFile>& file) { return file ? "" : file.error().message; }
std::string error_of(const GgufWriter& writer) { return error_of(GgufFile::from_bytes(writer.source())); }
std::string error_of_text(std::string_view text) {
  return error_of(GgufFile::from_bytes(std::make_shared<OwnedBytes>(std::as_bytes(std::span(text)), "model.gguf")));
}

GgufWriter small_model() {
  GgufWriter writer;
  writer.string("general.architecture", "llama").u32("llama.block_count", 2).f32("llama.rope.freq_base", 1e4F);
  writer.boolean("tokenizer.ggml.add_bos_token", true).strings("tokens", {"a", "b"}).i32s("types", {-1, 3}).i32("signed", 7);
  writer.tensor_f32("output.weight", {2, 2}, kFour);
  return writer;
}

TEST(Gguf, reads_back_what_was_written) {
  for (const std::uint32_t version : {2U, 3U}) {
    GgufWriter writer(version);
    writer.string("s", "text").u64("u", 1).tensor_f32("t", {4}, kFour);
    const auto file = GgufFile::from_bytes(writer.source());
    ASSERT_TRUE(file) << error_of(file);
    EXPECT_EQ(file->version(), version);
    EXPECT_EQ(*file->string_or("s", ""), "text");
    ASSERT_NE(file->tensor("t"), nullptr);
    EXPECT_EQ(std::memcmp(file->tensor("t")->bytes.data(), kFour, sizeof kFour), 0);
  }
}

TEST(Gguf, looks_up_by_type_and_widens_numbers) {
  const auto file = GgufFile::from_bytes(small_model().source());
  ASSERT_TRUE(file) << error_of(file);
  EXPECT_EQ(*file->unsigned_or("llama.block_count", 0), 2U);
  EXPECT_EQ(*file->unsigned_or("signed", 0), 7U);
  EXPECT_EQ(*file->unsigned_or("absent", 9), 9U);
  EXPECT_EQ(*file->number_or("llama.rope.freq_base", 0), 1e4);
  EXPECT_EQ(*file->number_or("llama.block_count", 0), 2.0);
  EXPECT_TRUE(*file->bool_or("tokenizer.ggml.add_bos_token", false));
  EXPECT_EQ(file->unsigned_or("general.architecture", 0).error().code, ErrorCode::kBadFile);
  EXPECT_THAT(file->string_or("llama.block_count", "").error().message,
              AllOf(HasSubstr("llama.block_count"), HasSubstr("an unsigned integer"), HasSubstr("a string")));
  const auto* types = std::get_if<GgufArray>(file->find("types"));
  ASSERT_NE(types, nullptr);
  EXPECT_EQ(std::get<std::vector<std::int64_t>>(types->items), (std::vector<std::int64_t>{-1, 3}));
  EXPECT_EQ(file->tensor("output.weight")->shape, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(file->tensor("absent"), nullptr);
}

TEST(Gguf, every_truncation_is_an_error) {
  const auto whole = small_model().bytes();
  for (std::size_t size = 0; size < whole.size() - 16; ++size) {  // the last 16 bytes are padding
    const auto source = std::make_shared<OwnedBytes>(std::span(whole).first(size), "cut.gguf");
    ASSERT_NE(error_of(GgufFile::from_bytes(source)), "") << size;
  }
}

TEST(Gguf, says_what_a_file_is_that_is_not_gguf) {
  EXPECT_THAT(error_of_text(""), HasSubstr("model.gguf: at offset 0: found an empty file"));
  EXPECT_THAT(error_of_text("version https://git-lfs.github.com/spec/v1\noid sha256:0"), HasSubstr("git-lfs pointer"));
  EXPECT_THAT(error_of_text("\n<!DOCTYPE html><html>"), HasSubstr("web page"));
  EXPECT_THAT(error_of_text("tjgg\x03"), HasSubstr("GGJT"));
  EXPECT_THAT(error_of_text(std::string_view("\x40\0\0\0\0\0\0\0{\"a\":", 13)), HasSubstr("safetensors"));
  EXPECT_THAT(error_of_text("PK\x03\x04....."), HasSubstr("PyTorch"));
  EXPECT_THAT(error_of_text("hello"), HasSubstr("found 'hell', expected 'GGUF'"));
}

TEST(Gguf, refuses_versions_it_does_not_read) {
  EXPECT_THAT(error_of(GgufWriter(1)), HasSubstr("GGUF version 1, expected version 2 or 3; convert"));
  EXPECT_THAT(error_of(GgufWriter(4)), HasSubstr("GGUF version 4"));
  EXPECT_THAT(error_of(GgufWriter(0x03000000)), HasSubstr("big-endian"));
}

TEST(Gguf, refuses_counts_that_the_file_cannot_hold) {
  auto bytes = GgufWriter().bytes();
  for (const std::size_t field : {std::size_t{8}, std::size_t{16}}) {
    auto broken = bytes;
    const std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();
    std::memcpy(broken.data() + field, &huge, sizeof huge);
    EXPECT_THAT(error_of(GgufFile::from_bytes(std::make_shared<OwnedBytes>(broken, "x"))), HasSubstr("at offset " + std::to_string(field)));
  }
  const auto huge_string = raw<std::uint64_t>({~std::uint64_t{0}, 0});
  EXPECT_THAT(error_of(GgufWriter().raw("k", 8, huge_string)), HasSubstr("the value of 'k'"));
  std::vector<std::byte> huge_array = raw<std::uint32_t>({10, 0, 0x80000000});  // 2^63 values of 8 bytes
  EXPECT_THAT(error_of(GgufWriter().raw("k", 9, huge_array)), HasSubstr("the length of the array"));
}

TEST(Gguf, refuses_malformed_metadata) {
  EXPECT_THAT(error_of(GgufWriter().u32("k", 1).u32("k", 2)), HasSubstr("'k' again"));
  EXPECT_THAT(error_of(GgufWriter().u32("", 1)), HasSubstr("empty metadata key"));
  EXPECT_THAT(error_of(GgufWriter().raw("k", 13, raw<std::uint32_t>({0}))), HasSubstr("type 13"));
  EXPECT_THAT(error_of(GgufWriter().raw("k", 7, raw<std::uint8_t>({2}))), HasSubstr("expected 0 or 1"));
  EXPECT_THAT(error_of(GgufWriter().raw("k", 9, raw<std::uint32_t>({9, 0, 0}))), HasSubstr("array of arrays"));
  for (const std::uint32_t alignment : {0U, 4U, 48U, 1U << 21})
    EXPECT_THAT(error_of(GgufWriter().u32("general.alignment", alignment)), HasSubstr("power of two")) << alignment;
  EXPECT_THAT(error_of(GgufWriter().u64("general.alignment", 32)), HasSubstr("4 (uint32)"));
}

TEST(Gguf, refuses_malformed_tensors) {
  const auto bytes = std::as_bytes(std::span(kFour));
  EXPECT_THAT(error_of(GgufWriter().tensor("t", 0, {1, 1, 1, 1, 1}, bytes)), HasSubstr("5 dimensions"));
  EXPECT_THAT(error_of(GgufWriter().tensor("t", 0, {0}, bytes)), HasSubstr("dimension 0"));
  EXPECT_THAT(error_of(GgufWriter().tensor("t", 0, {-1}, bytes)), HasSubstr("dimension 0"));
  EXPECT_THAT(error_of(GgufWriter().tensor("t", 0, {1LL << 32, 1LL << 32}, bytes)), HasSubstr("dimension 1"));
  EXPECT_THAT(error_of(GgufWriter().tensor("t", 0, {5000}, bytes)), HasSubstr("incomplete"));
  EXPECT_THAT(error_of(GgufWriter().tensor("t", 8, {4}, bytes)), HasSubstr("a multiple of 32"));
  EXPECT_THAT(error_of(GgufWriter().tensor("t", 0, {4}, bytes).tensor("t", 0, {4}, bytes)), HasSubstr("'t' again"));
  EXPECT_THAT(error_of(GgufWriter().tensor_at("t", 0, {4}, 8, bytes)), HasSubstr("multiple of the alignment"));
  EXPECT_THAT(error_of(GgufWriter().tensor_at("t", 0, {4}, ~std::uint64_t{31}, bytes)), HasSubstr("data section"));
}

TEST(Gguf, opens_tensors_of_unknown_type_without_bytes) {
  const auto file = GgufFile::from_bytes(GgufWriter().tensor("t", 999, {4}, std::as_bytes(std::span(kFour))).source());
  ASSERT_TRUE(file) << error_of(file);
  EXPECT_TRUE(file->tensor("t")->bytes.empty());
}

TEST(Gguf, honours_the_alignment_of_the_file) {
  GgufWriter writer;
  writer.alignment(128).tensor_f32("a", {2}, std::span(kFour).first(2)).tensor_f32("b", {4}, kFour);
  const auto file = GgufFile::from_bytes(writer.source());
  ASSERT_TRUE(file) << error_of(file);
  EXPECT_EQ(file->tensor("b")->bytes.data() - file->tensor("a")->bytes.data(), 128);
  EXPECT_EQ(std::memcmp(file->tensor("b")->bytes.data(), kFour, sizeof kFour), 0);
}

class GgufOnDisk : public testing::Test {
 protected:
  GgufOnDisk() : folder_(std::filesystem::path(testing::TempDir()) / ("gguf_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~GgufOnDisk() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  static GgufWriter part(std::uint16_t number, std::uint16_t count, std::int32_t tensors) {
    GgufWriter writer;
    writer.u16("split.no", number).u16("split.count", count).i32("split.tensors.count", tensors);
    return writer.tensor_f32("t" + std::to_string(number), {4}, kFour);
  }
  void write_parts(std::int32_t tensors) const {
    part(0, 2, tensors).write(path("m-00001-of-00002.gguf"));
    part(1, 2, tensors).write(path("m-00002-of-00002.gguf"));
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(GgufOnDisk, maps_a_file) {
  small_model().write(path("m.gguf"));
  const auto file = GgufFile::open(path("m.gguf"));
  ASSERT_TRUE(file) << error_of(file);
  EXPECT_EQ(file->name(), path("m.gguf"));
  EXPECT_EQ(file->file_bytes(), std::filesystem::file_size(path("m.gguf")));
}

TEST_F(GgufOnDisk, released_pages_can_still_be_read) {
  std::ofstream(path("pages")) << std::string(20000, 'x');
  const auto source = map_file(path("pages"));
  ASSERT_TRUE(source);
  (*source)->drop_pages(100, 15000);
  (*source)->drop_pages(19999, 100);
  EXPECT_EQ((*source)->bytes()[9000], std::byte{'x'});
}

TEST_F(GgufOnDisk, says_why_a_file_cannot_be_opened) {
  EXPECT_THAT(error_of(GgufFile::open(path("absent.gguf"))), AllOf(HasSubstr("absent.gguf"), HasSubstr("No such file")));
  EXPECT_THAT(error_of(GgufFile::open(path(""))), HasSubstr("folder"));
  EXPECT_THAT(error_of(GgufFile::open("/dev/null")), HasSubstr("not a regular file"));
  std::ofstream(path("empty.gguf"));
  EXPECT_THAT(error_of(GgufFile::open(path("empty.gguf"))), HasSubstr("empty file"));
}

TEST_F(GgufOnDisk, joins_the_parts_of_a_split_model) {
  write_parts(2);
  const auto file = GgufFile::open(path("m-00001-of-00002.gguf"));
  ASSERT_TRUE(file) << error_of(file);
  EXPECT_EQ(file->tensors().size(), 2U);
  EXPECT_EQ(std::memcmp(file->tensor("t1")->bytes.data(), kFour, sizeof kFour), 0);
}

TEST_F(GgufOnDisk, explains_what_is_wrong_with_a_split_model) {
  write_parts(2);
  EXPECT_THAT(error_of(GgufFile::open(path("m-00002-of-00002.gguf"))),
              AllOf(HasSubstr("part 2 of 2"), HasSubstr("open the first part"), HasSubstr("m-00001-of-00002.gguf")));
  std::filesystem::copy_file(path("m-00001-of-00002.gguf"), path("renamed.gguf"));
  EXPECT_THAT(error_of(GgufFile::open(path("renamed.gguf"))), HasSubstr("-00001-of-00002.gguf"));
  write_parts(3);
  EXPECT_THAT(error_of(GgufFile::open(path("m-00001-of-00002.gguf"))), HasSubstr("expected split.tensors.count = 3"));
  part(0, 2, 2).write(path("m-00002-of-00002.gguf"));
  EXPECT_THAT(error_of(GgufFile::open(path("m-00001-of-00002.gguf"))), HasSubstr("expected part 2 of 2"));
  std::filesystem::remove(path("m-00002-of-00002.gguf"));
  EXPECT_THAT(error_of(GgufFile::open(path("m-00001-of-00002.gguf"))), HasSubstr("m-00002-of-00002.gguf"));
}

TEST(GgufSharedFiles, every_model_and_vocabulary_opens) {
  const auto folder = braid::test::test_data("models");
  if (!folder) GTEST_SKIP() << "BRAID_TEST_DATA is not set";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(*folder)) {
    if (entry.path().extension() != ".gguf") continue;
    const auto file = GgufFile::open(entry.path().string());
    ASSERT_TRUE(file) << error_of(file);
    EXPECT_NE(file->find("tokenizer.ggml.model"), nullptr);
  }
}

}  // namespace
}  // namespace braid::files
