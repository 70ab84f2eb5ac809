#include "app/fingerprint.h"

#include "cache/prefix_index.h"
#include "support/gguf_writer.h"

#include <array>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <set>

namespace braid::app {
namespace {

std::string digest(float value, std::string_view chat_template, const model::LoadOptions& options = {}) {
  const std::array<float, 4> values = {1.0F, 2.0F, 3.0F, value};
  test::GgufWriter writer;
  writer.string("tokenizer.chat_template", chat_template).strings("tokenizer.ggml.tokens", {"a", "b"}).u32("n", 7);
  writer.tensor_f32("w", {2, 2}, values);
  const auto file = files::GgufFile::from_bytes(writer.source());
  return model_digest(file.value(), options);
}

TEST(Fingerprint, TellsModelsApart) {
  EXPECT_EQ(digest(4.0F, "x"), digest(4.0F, "x"));
  EXPECT_NE(digest(4.0F, "x"), digest(5.0F, "x"));
  EXPECT_NE(digest(4.0F, "x"), digest(4.0F, "y"));
  EXPECT_EQ(digest(4.0F, "x").size(), 16U);
}

TEST(Fingerprint, TellsArithmeticsApart) {
  model::LoadOptions bf16, fast, windowed;
  bf16.packing.float_type = kernels::WeightType::kBF16;
  fast.packing.rotated = true;
  windowed.kv_limit = 64;
  const std::set<std::string> digests = {digest(4.0F, "x"), digest(4.0F, "x", bf16), digest(4.0F, "x", fast), digest(4.0F, "x", windowed)};
  EXPECT_EQ(digests.size(), 4U);
}

TEST(Fingerprint, NamesWhatNumbersDependOn) {
  const std::string name = fingerprint("avx2", kernels::KvType::kF16, "0123");
  EXPECT_EQ(name.find("braid-"), 0U);
  const std::string build = name.substr(name.find('+') + 1, 8);
  EXPECT_EQ(build.find_first_not_of("0123456789abcdef"), std::string::npos) << name;
  EXPECT_NE(build, fmt::format("{:08x}", cache::xxh3_key({}).low >> 32U)) << "the linker has made no build ID";
  EXPECT_TRUE(name.ends_with("-avx2-f16-0123")) << name;
}

}  // namespace
}  // namespace braid::app
