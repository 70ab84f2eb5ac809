// Keys and values on their way into a file for other tools and back.
#include "model/kv_tensors.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

namespace braid::model::test {
namespace {

using kernels::KvType;

std::vector<std::byte> random_bytes(std::size_t size, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

// Blocks of 29 tokens, of which the last has five.
void expect_back(const KvLayout& layout) {
  const std::int64_t tokens = 29;
  std::vector<std::vector<std::byte>> blocks;
  KvTensors tensors(KvGroups::one(layout), tokens);
  for (std::uint32_t i = 0; i < 4; ++i) {
    blocks.push_back(random_bytes(layout.block_bytes(), i));
    if (layout.type == KvType::kBF16)  // finite numbers only
      for (std::size_t b = 1; b < layout.block_bytes(); b += 2) blocks.back()[b] &= std::byte{0xBF};
    tensors.put_block(i, 0, blocks.back());
  }
  files::SafeTensors contents = tensors.contents();
  contents.metadata = {{"tokens", "1,2,3"}, {"odd \"name\"\n", "\\"}};
  const std::vector<std::byte> file = files::write_safetensors(contents);
  const auto parsed = files::parse_safetensors(file);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->metadata, contents.metadata);
  for (std::int64_t i = 0; i < 3; ++i) {
    std::vector<std::byte> block(layout.block_bytes());
    ASSERT_TRUE(take_block(*parsed, KvGroups::one(layout), 0, tokens, i, block));
    EXPECT_EQ(block, blocks[static_cast<std::size_t>(i)]) << "no padding at these sizes";
  }
}

// Layers of two groups in turns, and one without keys and values: each tensor has the number of its layer.
TEST(KvTensors, OfGroupsComeBackToTheirLayers) {
  const std::vector<StoredLayer> layers{{{}, 2, 64}, {{32, 0}, 1, 128}, {}, {{}, 2, 64}, {{32, 0}, 1, 128}};
  const KvGroups groups = group_layers(layers, 8, KvType::kF16);
  ASSERT_EQ(groups.count(), 2);
  KvTensors tensors(groups, 16);
  std::vector<std::vector<std::byte>> blocks;
  for (std::uint32_t i = 0; i < 4; ++i) {
    blocks.push_back(random_bytes(groups.block_bytes(), i));
    tensors.put_block(i / 2, static_cast<std::int32_t>(i % 2), blocks.back());
  }
  const files::SafeTensors contents = tensors.contents();
  EXPECT_EQ(contents.tensors.size(), 8U);
  EXPECT_FALSE(contents.tensors.contains("layers.2.key"));
  EXPECT_EQ(contents.tensors.at("layers.4.value").shape, (std::vector<std::int64_t>{16, 1, 128}));
  for (std::uint32_t i = 0; i < 4; ++i) {
    std::vector<std::byte> block(groups.block_bytes());
    ASSERT_TRUE(take_block(contents, groups, static_cast<std::int32_t>(i % 2), 16, i / 2, block));
    EXPECT_EQ(block, blocks[i]);
  }
}

// Each part of a state is a tensor of its layer; what lies between them is nobody's.
TEST(KvTensors, StatesComeBackToTheirPlaces) {
  KvGroups groups = group_layers({{{}, 2, 64}, {}, {}}, 8, KvType::kF16);
  groups.states = StateLayout({{}, {40, 700}, {900, 40}}, groups.block_bytes());
  ASSERT_EQ(groups.states.blocks(), 2);
  KvTensors tensors(groups, 16);
  std::vector<std::vector<std::byte>> blocks;
  for (std::int32_t part = 0; part < 2; ++part) {
    blocks.push_back(random_bytes(groups.block_bytes(), static_cast<std::uint32_t>(part)));
    tensors.put_state(part, blocks.back());
  }
  files::SafeTensors contents = tensors.contents();
  EXPECT_EQ(contents.tensors.size(), 6U);
  EXPECT_EQ(contents.tensors.at("layers.2.state.0").shape, std::vector<std::int64_t>{900});
  for (std::int32_t part = 0; part < 2; ++part) {
    std::vector<std::byte> block(groups.block_bytes()), expected(groups.block_bytes());
    ASSERT_TRUE(take_state(contents, groups, part, block));
    groups.states.for_written(part, [&](std::size_t at, std::size_t bytes) {
      std::memcpy(expected.data() + at, blocks[static_cast<std::size_t>(part)].data() + at, bytes);
    });
    EXPECT_EQ(block, expected);
    EXPECT_NE(block, blocks[static_cast<std::size_t>(part)]);
  }
  contents.tensors.erase("layers.1.state.1");
  std::vector<std::byte> block(groups.block_bytes());
  EXPECT_THAT(take_state(contents, groups, 0, block).error().message, testing::HasSubstr("layers.1.state.1' is missing"));
}

class EachKvType : public testing::TestWithParam<KvType> {};
INSTANTIATE_TEST_SUITE_P(KvTensors, EachKvType, testing::Values(KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kInt8));

TEST_P(EachKvType, ComeBackBitForBitThroughAFile) {
  expect_back({.layers = 3, .kv_heads = 2, .head_dim = 128, .block_tokens = 8, .type = GetParam()});
}

TEST_P(EachKvType, LatentsComeBackBitForBitThroughAFile) {
  expect_back({.layers = 3, .kv_heads = 1, .head_dim = 128, .block_tokens = 8, .type = GetParam(), .latent = true});
}

TEST(KvTensors, AreInTheOrderOfTheirShape) {
  const KvLayout layout{.layers = 1, .kv_heads = 2, .head_dim = 64, .block_tokens = 8, .type = KvType::kF32};
  std::vector<std::byte> block(layout.block_bytes());
  const auto at = [&](std::size_t head, bool value, std::size_t element) {
    return block.data() + head * layout.head_bytes() + (value ? layout.half_bytes() : 0) + element * 4;
  };
  const float key = 3.0F, value = 4.0F;
  std::memcpy(at(1, false, 5 * 8 + 2), &key, 4);    // [head_dim, block_tokens]: dimension 5 of token 2
  std::memcpy(at(1, true, 2 * 64 + 5), &value, 4);  // [block_tokens, head_dim]
  KvTensors tensors(KvGroups::one(layout), 8);
  tensors.put_block(0, 0, block);
  const files::SafeTensors contents = tensors.contents();
  for (const auto& [name, number] : {std::pair("layers.0.key", key), std::pair("layers.0.value", value)}) {
    const files::SafeTensor& tensor = contents.tensors.at(name);
    EXPECT_THAT(tensor.shape, testing::ElementsAre(8, 2, 64));
    float found = 0.0F;
    std::memcpy(&found, tensor.bytes.data() + ((2 * 2 + 1) * 64 + 5) * 4, 4);
    EXPECT_EQ(found, number);
  }
}

TEST(KvTensors, OfBf16AreInPairsInTheBlock) {
  const KvLayout layout{.layers = 1, .kv_heads = 2, .head_dim = 64, .block_tokens = 8, .type = KvType::kBF16};
  std::vector<std::byte> block(layout.block_bytes());
  const auto put = [&](std::size_t element, bool value, std::uint16_t bits) {
    std::memcpy(block.data() + layout.head_bytes() + (value ? layout.half_bytes() : 0) + element * 2, &bits, 2);
  };
  put((2 * 8 + 3) * 2 + 1, false, 0x4040);  // [head_dim / 2, block_tokens, 2]: dimension 5 of token 3
  put((1 * 64 + 5) * 2 + 1, true, 0x4080);  // [block_tokens / 2, head_dim, 2]
  KvTensors tensors(KvGroups::one(layout), 8);
  tensors.put_block(0, 0, block);
  const files::SafeTensors contents = tensors.contents();
  for (const auto& [name, bits] : {std::pair("layers.0.key", 0x4040), std::pair("layers.0.value", 0x4080)}) {
    std::uint16_t found = 0;
    std::memcpy(&found, contents.tensors.at(name).bytes.data() + ((3 * 2 + 1) * 64 + 5) * 2, 2);
    EXPECT_EQ(found, bits);
  }
}

TEST(KvTensors, RefuseBf16ValuesThatAreNotFinite) {
  const KvLayout layout{.layers = 1, .kv_heads = 1, .head_dim = 64, .block_tokens = 8, .type = KvType::kBF16};
  for (const std::uint16_t bits : {std::uint16_t{0x7F80}, std::uint16_t{0xFFC0}}) {
    for (const bool value : {false, true}) {
      std::vector<std::byte> block(layout.block_bytes());
      std::memcpy(block.data() + (value ? layout.half_bytes() : 0) + 70 * 2, &bits, 2);
      KvTensors tensors(KvGroups::one(layout), 8);
      tensors.put_block(0, 0, block);
      std::vector<std::byte> taken(layout.block_bytes());
      const auto result = take_block(tensors.contents(), KvGroups::one(layout), 0, 8, 0, taken);
      EXPECT_EQ(static_cast<bool>(result), !value) << "keys may be anything: scores that nobody sees are left out";
      if (value) {
        EXPECT_THAT(result.error().message, testing::HasSubstr("'layers.0.value' holds infinities or NaNs"));
      }
    }
  }
}

TEST(KvTensors, RefuseAFileOfAnotherShape) {
  const KvLayout layout{.layers = 2, .kv_heads = 2, .head_dim = 64, .block_tokens = 8, .type = KvType::kF16};
  const KvTensors tensors(KvGroups::one(layout), 16);
  std::vector<std::byte> block(layout.block_bytes());
  const auto message = [&](files::SafeTensors contents, const KvLayout& wanted, std::int64_t tokens) {
    const auto taken = take_block(contents, KvGroups::one(wanted), 0, tokens, 0, block);
    return taken ? std::string("taken") : taken.error().message;
  };
  EXPECT_EQ(message(tensors.contents(), layout, 16), "taken");
  EXPECT_THAT(message(tensors.contents(), layout, 24), testing::HasSubstr("'layers.0.key' is F16 [16, 2, 64], expected F16 [24, 2, 64]"));
  KvLayout other = layout;
  other.type = KvType::kBF16;
  EXPECT_THAT(message(tensors.contents(), other, 16), testing::HasSubstr("expected BF16"));
  other = layout;
  other.layers = 3;
  EXPECT_THAT(message(tensors.contents(), other, 16), testing::HasSubstr("'layers.2.key' is missing"));
}

std::vector<std::byte> file_of(std::string header, std::size_t data_bytes) {
  const std::uint64_t size = header.size();
  std::vector<std::byte> file(8 + header.size() + data_bytes);
  std::memcpy(file.data(), &size, 8);
  std::memcpy(file.data() + 8, header.data(), header.size());
  return file;
}

TEST(SafeTensors, RefuseEveryLengthThatDoesNotFit) {
  const auto message = [](const std::string& header, std::size_t data_bytes) {
    const auto parsed = files::parse_safetensors(file_of(header, data_bytes));
    return parsed ? std::string("parsed") : parsed.error().message;
  };
  const std::string sound =
      R"({"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"b":{"dtype":"I8","shape":[3],"data_offsets":[16,19]}})";
  EXPECT_EQ(message(sound, 19), "parsed");
  EXPECT_THAT(message(sound, 18), testing::HasSubstr("beyond the end"));
  EXPECT_THAT(message(sound, 20), testing::HasSubstr("behind the last"));
  EXPECT_THAT(message(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,16]}})", 16), testing::HasSubstr("other bytes than its shape"));
  EXPECT_THAT(message(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4), testing::HasSubstr("other bytes"));
  EXPECT_THAT(message(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296,4294967296],"data_offsets":[0,0]}})", 0),
              testing::HasSubstr("other bytes"));
  EXPECT_THAT(message(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[8,4]}})", 8), testing::HasSubstr("other bytes"));
  EXPECT_THAT(message(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8), testing::HasSubstr("gaps"));
  EXPECT_THAT(message(R"({"a":{"dtype":"I8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"I8","shape":[4],"data_offsets":[2,6]}})", 6),
              testing::HasSubstr("overlap"));
  EXPECT_THAT(message(R"({"a":{"dtype":"Q3","shape":[1],"data_offsets":[0,1]}})", 1), testing::HasSubstr("'Q3'"));
  EXPECT_THAT(message(R"({"a":{"shape":[1],"data_offsets":[0,1]}})", 1), testing::HasSubstr("lacks"));
  EXPECT_THAT(message("[1]", 0), testing::HasSubstr("no JSON object"));
  EXPECT_THAT(message(R"({"__metadata__":{"a":1}})", 0), testing::HasSubstr("texts"));
  EXPECT_FALSE(files::parse_safetensors({}));
  const auto file = file_of(sound, 19);
  for (std::size_t length = 0; length < file.size(); ++length)
    EXPECT_FALSE(files::parse_safetensors(std::span(file).first(length))) << length;
  auto long_header = file;
  std::memset(long_header.data(), 0xff, 8);
  EXPECT_FALSE(files::parse_safetensors(long_header));
}

}  // namespace
}  // namespace braid::model::test
