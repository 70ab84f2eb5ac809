// Whoever may read whose blocks.
#include "model/kv_identity.h"

#include "kernels/select.h"
#include "model/tiny_model.h"

#include <gtest/gtest.h>
#include <thread>
#include <vector>

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

TEST(ModelRevision, TellsTheCallersThreadHowFarItIs) {
  const TinyModel tiny;
  kernels::ThreadTeam team(2);
  std::uint64_t last = 0;
  std::uint64_t most = 0;
  model_revision(tiny.file(), team, [&, caller = std::this_thread::get_id()](std::string_view, std::uint64_t done, std::uint64_t total) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_LE(last, done);
    last = done;
    most = total;
  });
  EXPECT_GT(most, 0U);
  EXPECT_EQ(last, most);
}

TEST(KvIdentity, LeavesTheLoadingThreadWhereItMayRunAndPinsTheStrand) {
  const std::vector<int> allowed = kernels::allowed_cpus();
  if (allowed.size() < 2) GTEST_SKIP() << "one processor: nothing to tell apart";
  LoadOptions options;
  options.max_batch = 2;
  options.cpus = {allowed.back()};
  const TinyModel tiny;
  const auto model = LanguageModel::load(tiny.file(), kernels::best_kernel_table(), std::move(options)).value();
  model->allocate_kv(2).value();
  std::vector<int> loading;
  std::vector<int> strand;
  std::thread([&] {
    EXPECT_FALSE(kv_identity({1, 2}, *model).empty());
    loading = kernels::allowed_cpus();
  }).join();
  std::thread([&] {
    step::StepResult result;
    model->execute({}, result);
    strand = kernels::allowed_cpus();
  }).join();
  EXPECT_EQ(loading, allowed);
  EXPECT_EQ(strand, std::vector<int>{allowed.back()});
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
