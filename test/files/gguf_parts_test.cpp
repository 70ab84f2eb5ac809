// Models in several files, and importance matrices.
#include "files/gguf_parts.h"

#include "files/importance_matrix.h"
#include "files/part_name.h"
#include "support/folder.h"
#include "support/gguf_writer.h"

#include <array>
#include <cstring>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid::files {
namespace {

using testing::HasSubstr;

constexpr const char* kModel = BRAID_SOURCE_DIR "/test/model/reference/qwen3.gguf";

std::vector<std::byte> bytes_of(std::span<const std::byte> bytes) { return {bytes.begin(), bytes.end()}; }

void expect_same(const GgufFile& a, const GgufFile& b, std::size_t more_entries) {
  ASSERT_EQ(a.metadata().size(), b.metadata().size() + more_entries);
  for (std::size_t i = 0; i < b.metadata().size(); ++i) {
    EXPECT_EQ(a.metadata()[i].first, b.metadata()[i].first);
    EXPECT_EQ(bytes_of(a.stored_values()[i]), bytes_of(b.stored_values()[i])) << b.metadata()[i].first;
  }
  ASSERT_EQ(a.tensors().size(), b.tensors().size());
  for (std::size_t i = 0; i < b.tensors().size(); ++i) {
    EXPECT_EQ(a.tensors()[i].name, b.tensors()[i].name);
    EXPECT_EQ(a.tensors()[i].type, b.tensors()[i].type);
    EXPECT_EQ(a.tensors()[i].shape, b.tensors()[i].shape);
    EXPECT_EQ(bytes_of(a.tensors()[i].bytes), bytes_of(b.tensors()[i].bytes)) << b.tensors()[i].name;
  }
}

TEST(PartName, IsAStemAndTwoNumbersOfFiveDigits) {
  const auto part = part_name("m-Q8_0-00012-of-00034");
  ASSERT_TRUE(part);
  EXPECT_EQ(part->stem, "m-Q8_0");
  EXPECT_EQ(part->number, 12U);
  for (const char* name : {"", "m", "-00001-of-00002", "m-0001-of-00002", "m-00001-of-0002", "m-0000x-of-00002", "m-00001-of-0000x",
                           "m-00001_of-00002", "m_00001-of-00002", "m-00001-of-00002.gguf"})
    EXPECT_FALSE(part_name(name)) << name;
}

TEST(GgufParts, OfSomeTensorsEachAreOneModelAgain) {
  const braid::test::Folder folder;
  const GgufFile whole = GgufFile::open(kModel).value();
  const auto paths = split_model(whole, folder / "model", {.tensors = 9}, {}).value();
  ASSERT_EQ(paths.size(), (whole.tensors().size() + 8) / 9);
  EXPECT_EQ(paths.front(), folder / ("model-00001-of-0000" + std::to_string(paths.size()) + ".gguf"));
  const GgufFile parts = GgufFile::open(paths.front()).value();
  expect_same(parts, whole, 3);  // split.no, split.count, split.tensors.count
  merge_model(parts, folder / "merged.gguf", {}).value();
  expect_same(GgufFile::open(folder / "merged.gguf").value(), whole, 0);
}

TEST(GgufParts, HoldAsManyBytesAsTheyMay) {
  const braid::test::Folder folder;
  const GgufFile whole = GgufFile::open(kModel).value();
  std::uint64_t largest = 0;
  for (const GgufTensor& tensor : whole.tensors()) largest = std::max<std::uint64_t>(largest, tensor.bytes.size());
  for (const std::string& path : split_model(whole, folder / "model", {.bytes = 2 * largest}, {}).value()) {
    std::ifstream part(path, std::ios::binary | std::ios::ate);
    EXPECT_LT(static_cast<std::uint64_t>(part.tellg()), 2 * largest + (1U << 20U));
  }
  // A tensor that is larger than a part may be is a part of its own.
  EXPECT_EQ(part_paths(whole, "x", {.bytes = 1}).size(), whole.tensors().size());
}

// llama.cpp reads the number and the count as 16 bits, the tensors as a signed number.
TEST(GgufParts, SayWhichTheyAreInTheTypesThatAreRead) {
  const braid::test::Folder folder;
  const auto paths = split_model(GgufFile::open(kModel).value(), folder / "model", {.tensors = 20}, {}).value();
  const GgufFile parts = GgufFile::open(paths.front()).value();
  const auto type_of = [&](std::string_view key) {
    for (std::size_t i = 0; i < parts.metadata().size(); ++i) {
      std::uint32_t type = 0;
      std::memcpy(&type, parts.stored_values()[i].data(), sizeof type);
      if (parts.metadata()[i].first == key) return type;
    }
    return ~0U;
  };
  EXPECT_EQ(type_of("split.no"), 2U);
  EXPECT_EQ(type_of("split.count"), 2U);
  EXPECT_EQ(type_of("split.tensors.count"), 5U);
}

TEST(GgufParts, TellWhatCannotBeWritten) {
  const GgufFile whole = GgufFile::open(kModel).value();
  const auto split = split_model(whole, "/nowhere/model", {.tensors = 20}, {});
  ASSERT_FALSE(split);
  EXPECT_THAT(split.error().message, HasSubstr("cannot be written"));
}

template <class T>
void put(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

class ImportanceMatrices : public testing::Test {
 protected:
  std::string write(std::string_view bytes) {
    const std::string path = folder / "imatrix";
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  std::string error_of(std::string_view bytes) {
    const auto read = read_importance_matrix(write(bytes));
    return read ? "none" : read.error().message;
  }
  braid::test::Folder folder;
};

TEST_F(ImportanceMatrices, AreReadInTheOldForm) {
  std::string bytes;
  put(bytes, std::int32_t{1});
  put(bytes, std::int32_t{8});
  bytes += "a.weight";
  put(bytes, std::int32_t{4});  // calls
  put(bytes, std::int32_t{2});
  put(bytes, 8.0F);
  put(bytes, 2.0F);
  EXPECT_EQ(read_importance_matrix(write(bytes)).value(), (ImportanceMatrix{{"a.weight", {2.0F, 0.5F}}}));
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_NE(error_of(std::string_view(bytes).substr(0, length)), "none") << length;
}

TEST_F(ImportanceMatrices, AreReadAsGguf) {
  const std::array<float, 4> sums = {8.0F, 2.0F, 5.0F, 5.0F};
  const std::array<float, 2> counts = {4.0F, 0.0F};
  braid::test::GgufWriter writer;
  writer.string("general.type", "imatrix");
  writer.tensor_f32("a.weight.in_sum2", {2, 2}, sums);
  writer.tensor_f32("a.weight.counts", {1, 2}, counts);
  const auto bytes = writer.bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  // Of the second expert nothing was seen.
  EXPECT_EQ(read_importance_matrix(write(text)).value(), (ImportanceMatrix{{"a.weight", {2.0F, 0.5F, 1.0F, 1.0F}}}));
}

TEST_F(ImportanceMatrices, TellWhatIsWrong) {
  braid::test::GgufWriter none;
  none.string("general.type", "imatrix");
  const auto bytes = none.bytes();
  EXPECT_THAT(error_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()}), HasSubstr("no tensor that ends in '.in_sum2'"));
  EXPECT_THAT(error_of("what"), HasSubstr("is no importance matrix"));
}

}  // namespace
}  // namespace braid::files
