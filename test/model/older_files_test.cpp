// Files as converters wrote them once compute what today's do.
#include "model/families/older_files.h"

#include "kernels/encode.h"
#include "model/folder_models.h"
#include "model/forward_harness.h"
#include "model/row_encoding.h"

#include <fmt/format.h>

namespace braid::model::test {
namespace {

using kernels::WeightType;

std::string key_of(const files::GgufFile& file, const std::string& key) {
  return file.string_or("general.architecture", "").value() + "." + key;
}

std::int64_t number_of(const files::GgufFile& file, const std::string& key) {
  return static_cast<std::int64_t>(file.unsigned_or(key_of(file, key), 0).value());
}

// What makes keys and values in one matrix of `type`: of each head its keys' rows before its values'.
files::GgufTensor join_latent_heads(const files::GgufTensor& keys, const files::GgufTensor& values, WeightType type,
                                    files::GgufContents& contents) {
  const std::int64_t plain = keys.shape[0];
  const std::int64_t rank = keys.shape[1];
  const std::int64_t value = values.shape[1];
  files::GgufTensor joined;
  joined.name = values.name.substr(0, values.name.rfind("attn_v_b")) + "attn_kv_b.weight";
  joined.type = static_cast<std::uint32_t>(type);
  joined.shape = {rank, keys.shape[2] * (plain + value)};
  const std::size_t row_bytes = kernels::stored_row_bytes(*kernels::weight_format(type), rank);
  std::vector<std::byte> bytes(row_bytes * static_cast<std::size_t>(joined.shape[1]));
  std::vector<float> row(static_cast<std::size_t>(rank));
  std::vector<float> column(static_cast<std::size_t>(plain));
  for (std::int64_t at = 0; at < joined.shape[1]; ++at) {
    const std::int64_t head = at / (plain + value);
    const std::int64_t i = at % (plain + value);
    for (std::int64_t r = 0; r < rank && i < plain; ++r) {
      read_row(keys, head * rank + r, plain, column.data());
      row[static_cast<std::size_t>(r)] = column[static_cast<std::size_t>(i)];
    }
    if (i >= plain) read_row(values, head * value + i - plain, rank, row.data());
    kernels::encode_row(type, row.data(), rank, bytes.data() + static_cast<std::size_t>(at) * row_bytes);
  }
  contents.sources.push_back(files::owned_bytes(std::move(bytes), joined.name));
  joined.bytes = contents.sources.back()->bytes();
  return joined;
}

// The folder's model as a converter of 2024 wrote it.
files::GgufFile as_of_2024(const files::GgufFile& today, WeightType type) {
  files::GgufContents contents = today.contents();
  std::erase_if(contents.tensors, [](const files::GgufTensor& tensor) {
    return tensor.name.ends_with("attn_k_b.weight") || tensor.name.ends_with("attn_v_b.weight");
  });
  for (std::int64_t i = 0; i < number_of(today, "block_count"); ++i) {
    const auto* keys = today.tensor(fmt::format("blk.{}.attn_k_b.weight", i));
    const auto* values = today.tensor(fmt::format("blk.{}.attn_v_b.weight", i));
    if (keys != nullptr) contents.tensors.push_back(join_latent_heads(*keys, *values, type, contents));
  }
  const auto set = [&](const std::string& key, std::int64_t number) {
    std::erase_if(contents.metadata, [&](const auto& entry) { return entry.first == key_of(today, key); });
    if (number > 0) contents.metadata.emplace_back(key_of(today, key), static_cast<std::uint64_t>(number));
  };
  set("attention.head_count_kv", number_of(today, "attention.head_count"));
  set("attention.key_length", number_of(today, "attention.key_length_mla"));
  set("attention.value_length", number_of(today, "attention.value_length_mla"));
  set("attention.key_length_mla", 0);
  set("attention.value_length_mla", 0);
  return files::GgufFile::from_contents(std::move(contents));
}

std::vector<float> logits_of(const files::GgufFile& file) {
  std::vector<TokenId> ids(40);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<TokenId>(i * 7 % 100);
  return ForwardHarness(file, kernels::best_kernel_table(), {.float_type = WeightType::kF32}).logits(ids);
}

TEST(OlderFiles, WithKeysAndValuesInOneMatrixGiveTodaysLogits) {
  for (const char* name : {"deepseek-v2", "deepseek-v2-lite", "deepseek-v3", "kimi-k2", "glm4-moe-lite", "minicpm3"}) {
    const files::GgufFile today = open_folder_model(name);
    EXPECT_FALSE(describe_model(as_of_2024(today, WeightType::kF32))) << "the form is not today's";
    auto file = in_todays_form(as_of_2024(today, WeightType::kF32));
    ASSERT_TRUE(file) << name << ": " << file.error().message;
    EXPECT_EQ(logits_of(*file), logits_of(today)) << name;
  }
}

// Keys are rounded a second time, to eight bits, which changes little beside the first.
TEST(OlderFiles, OfQuantisedTypesKeepTheirValuesAndRoundTheirKeysToQ8) {
  const files::GgufFile today = open_folder_model("deepseek-v2-lite");
  for (const WeightType type : {WeightType::kQ8_0, WeightType::kQ4_K}) {
    const files::GgufFile old = as_of_2024(today, type);
    const files::GgufTensor whole = *old.tensor("blk.0.attn_kv_b.weight");
    auto file = in_todays_form(as_of_2024(today, type));
    ASSERT_TRUE(file) << file.error().message;
    const files::GgufTensor& keys = *file->tensor("blk.0.attn_k_b.weight");
    const files::GgufTensor& values = *file->tensor("blk.0.attn_v_b.weight");
    EXPECT_EQ(keys.type, static_cast<std::uint32_t>(WeightType::kQ8_0));
    EXPECT_EQ(values.type, static_cast<std::uint32_t>(type));
    std::vector<float> of_whole(256);
    std::vector<float> of_part(256);
    read_row(whole, 64 + 32 + 5, 256, of_whole.data());  // of the second head the sixth value
    read_row(values, 32 + 5, 256, of_part.data());
    EXPECT_EQ(of_part, of_whole);
    read_row(whole, 64 + 7, 256, of_whole.data());  // the eighth key
    float greatest = 0.0F;
    float difference = 0.0F;
    for (std::size_t r = 0; r < 256; ++r) {
      read_row(keys, 256 + static_cast<std::int64_t>(r), 32, of_part.data());
      for (std::size_t i = 0; i < 32; ++i) greatest = std::max(greatest, std::fabs(of_part[i]));
      difference = std::max(difference, std::fabs(of_part[7] - of_whole[r]));
    }
    EXPECT_LE(difference, greatest / 254.0F * 1.01F) << "half a step of a block's scale";
    EXPECT_TRUE(std::ranges::all_of(logits_of(*file), [](float logit) { return std::isfinite(logit); }));
  }
}

TEST(OlderFiles, OfTodaysFormAndOthersStayAsTheyAre) {
  const files::GgufFile today = open_folder_model("deepseek-v3");
  files::GgufContents both = today.contents();
  both.tensors.push_back(
      join_latent_heads(*today.tensor("blk.0.attn_k_b.weight"), *today.tensor("blk.0.attn_v_b.weight"), WeightType::kF32, both));
  auto file = in_todays_form(files::GgufFile::from_contents(std::move(both)));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->tensor("blk.0.attn_kv_b.weight"), nullptr);
  EXPECT_EQ(file->tensors().size(), today.tensors().size());
  EXPECT_EQ(in_todays_form(open_folder_model("qwen3"))->tensors().size(), open_folder_model("qwen3").tensors().size());
}

TEST(OlderFiles, NameWhatIsWrong) {
  const files::GgufFile today = open_folder_model("deepseek-v3");
  const auto error_of = [&](auto change) {
    files::GgufContents contents = as_of_2024(today, WeightType::kF32).contents();
    change(contents);
    const auto file = in_todays_form(files::GgufFile::from_contents(std::move(contents)));
    return file ? std::string("none") : file.error().message;
  };
  const auto without = [](const char* key) {
    return
        [key](files::GgufContents& contents) { std::erase_if(contents.metadata, [key](const auto& entry) { return entry.first == key; }); };
  };
  EXPECT_NE(error_of(without("deepseek2.attention.kv_lora_rank")).find("deepseek2.attention.kv_lora_rank"), std::string::npos);
  EXPECT_NE(error_of([](files::GgufContents& contents) {
              for (files::GgufTensor& tensor : contents.tensors)
                if (tensor.name == "blk.1.attn_kv_b.weight") tensor.shape[1] -= 1;
            }).find("the tensor blk.1.attn_kv_b.weight is not [112, rank]"),
            std::string::npos);
}

}  // namespace
}  // namespace braid::model::test
