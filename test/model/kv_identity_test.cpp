// Whoever may read whose blocks.
#include "model/kv_identity.h"

#include "kernels/select.h"
#include "model/tiny_model.h"

#include <gtest/gtest.h>

namespace braid::model::test {
namespace {

cache::PrefixKey revision_of(const TinyModel& tiny, int threads = 1) {
  kernels::ThreadTeam team(threads);
  return model_revision(tiny.file(), team);
}

TEST(ModelRevision, DependsOnMetadataAndTensorsOnly) {
  const cache::PrefixKey plain = revision_of(TinyModel());
  EXPECT_EQ(revision_of(TinyModel(), 3), plain);
  TinyModel scaled;
  scaled.keys["llama.rope.freq_base"] = 5000.0F;
  EXPECT_NE(revision_of(scaled), plain);
  TinyModel larger;
  larger.tensors["extra"] = {{64}};
  EXPECT_NE(revision_of(larger), plain);
}

TEST(ModelRevision, SeesOneChangedWeight) {
  const auto revision = [](std::byte last) {
    braid::test::GgufWriter writer;
    std::vector<std::byte> bytes(9 << 20);
    bytes.back() = last;
    writer.string("general.architecture", "llama");
    writer.tensor("weights", 0, {9 << 18}, bytes);
    kernels::ThreadTeam team(2);
    return model_revision(files::GgufFile::from_bytes(writer.source("changed.gguf")).value(), team);
  };
  EXPECT_EQ(revision(std::byte{0}), revision(std::byte{0}));
  EXPECT_NE(revision(std::byte{0}), revision(std::byte{1}));
}

TEST(KvIdentity, IsTheSameWhereTheBitsAreAndElseAnother) {
  const files::GgufFile file = files::GgufFile::open(BRAID_SOURCE_DIR "/models/demo-draft-q8_0.gguf").value();
  const auto identity = [&](LoadOptions options) {
    options.max_batch = 2;
    const auto model = LanguageModel::load(file, kernels::best_kernel_table(), options).value();
    model->allocate_kv(2).value();
    return kv_identity({1, 2}, *model);
  };
  const auto with = [](const auto& change) {
    LoadOptions options;
    change(options);
    return options;
  };
  const std::string plain = identity({});
  EXPECT_EQ(identity(with([](LoadOptions& o) { o.threads = 2; })), plain);
  EXPECT_NE(identity(with([](LoadOptions& o) { o.kv_type = kernels::KvType::kF32; })), plain);
  EXPECT_NE(identity(with([](LoadOptions& o) { o.block_tokens = 32; })), plain);
}

}  // namespace
}  // namespace braid::model::test
