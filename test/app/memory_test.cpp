#include "app/memory.h"

#include "app/draft_model.h"
#include "app/load_models.h"
#include "app/loaded_model.h"
#include "support/folder.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <span>
#include <string>
#include <vector>

namespace braid::app {
namespace {

namespace fs = std::filesystem;

// A folder that stands for "/".
class MemoryRoot : public testing::Test {
 protected:
  MemoryRoot() { write("proc/meminfo", "MemTotal:       2000000 kB\nMemFree: 10 kB\nMemAvailable:   1000000 kB\n"); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  MemoryLeft left(std::uint64_t untouched = 0) const { return memory_left(untouched, root_.c_str()).value(); }
  void remove(const std::string& path) { fs::remove_all(root_ / path); }
  std::string folder(const std::string& path) const { return (root_ / path).string(); }

 private:
  test::Folder folder_;
  fs::path root_ = folder_.path();
};

// Of `bytes` that the system leaves, what may be promised.
std::uint64_t promised(std::uint64_t bytes) { return bytes - kServerMemory - bytes / 512; }

TEST_F(MemoryRoot, WithoutControlGroupsIsMemAvailable) {
  EXPECT_EQ(left().bytes, promised(1'000'000U * 1024U));
  EXPECT_EQ(left().bound, "the machine's free memory");
}

TEST_F(MemoryRoot, VersionTwoLimitCuts) {
  write("proc/self/cgroup", "0::/a/b\n");
  write("sys/fs/cgroup/a/b/memory.max", "600000000\n");
  write("sys/fs/cgroup/a/b/memory.current", "250000000\n");
  write("sys/fs/cgroup/a/b/memory.stat", "anon 100\nfile 120000000\ninactive_file 50000000\n");
  EXPECT_EQ(left().bytes, promised(400'000'000U));
  EXPECT_EQ(left().bound, "the limit of " + folder("sys/fs/cgroup/a/b"));
  write("sys/fs/cgroup/a/b/memory.high", "500000000\n");  // above it, the group is slowed down to a standstill
  EXPECT_EQ(left().bytes, promised(300'000'000U));
}

TEST_F(MemoryRoot, AncestorsLimitCuts) {
  write("proc/self/cgroup", "0::/a/b\n");
  write("sys/fs/cgroup/a/b/memory.max", "max\n");
  write("sys/fs/cgroup/a/b/memory.current", "250000\n");
  write("sys/fs/cgroup/a/memory.max", "300000\n");
  write("sys/fs/cgroup/a/memory.current", "310000\n");
  EXPECT_EQ(left().bytes, 0U);
}

TEST_F(MemoryRoot, VersionOneLimitCuts) {
  write("proc/self/cgroup", "11:cpu,cpuacct:/x\n7:memory:/x\n");
  write("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "500000000\n");
  write("sys/fs/cgroup/memory/x/memory.usage_in_bytes", "200000000\n");
  write("sys/fs/cgroup/memory/x/memory.stat", "inactive_file 1\ntotal_inactive_file 100000000\n");
  EXPECT_EQ(left().bytes, promised(400'000'000U));
  EXPECT_EQ(left().bound, "the limit of " + folder("sys/fs/cgroup/memory/x"));
}

// Docker without a cgroup namespace: the path is the host's, and what is mounted is the container's own group.
TEST_F(MemoryRoot, AContainersGroupIsTheMount) {
  write("proc/self/cgroup", "4:memory:/docker/0123\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "300000000\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "100000000\n");
  EXPECT_EQ(left().bytes, promised(200'000'000U));
}

TEST_F(MemoryRoot, WhatIsMappedAndNotTouchedCountsAsTaken) {
  EXPECT_EQ(left(100'000'000U).bytes, left().bytes - 100'000'000U);
  EXPECT_EQ(left(1ULL << 50U).bytes, 0U);
}

TEST_F(MemoryRoot, WithoutProcTheMountedGroupCounts) {
  remove("proc");
  write("sys/fs/cgroup/memory.max", "400000000\n");
  write("sys/fs/cgroup/memory.current", "100000000\n");
  EXPECT_EQ(left().bytes, promised(300'000'000U));
}

TEST(MemoryLeft, OfThisMachineIsNotNothing) { EXPECT_GT(memory_left().value().bytes, 1U << 20U); }

TEST(MemoryLeft, IsNotNothingWhereItCannotBeKnown) {
  const Result<MemoryLeft> unknown = memory_left(0, "/there/is/no/such/folder");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message,
            "cannot find out how much memory there is: /there/is/no/such/folder/proc/meminfo: No such file or directory");
}

KvDemand demand() {
  KvDemand d;
  d.bytes = 500'000;
  d.block_bytes = 1'000;
  d.block_tokens = 16;
  d.max_batch = 4;
  d.model_context = 1'000;
  return d;
}

TEST(KvMemory, IsHalfOfWhatIsAvailable) { EXPECT_EQ(kv_memory({1'000'000, "ulimit -v"}, {}).value(), 500'000U); }

TEST(LoadModels, LeavesAPredecessorWhatItWillStillTake) {
  const ServedModelOptions model{.model = ModelOptions(), .id = "demo"};
  const auto team = make_team(model.model).value();
  const auto refused = load_models(std::span(&model, 1), {.max_batch = 4, .team = team.get()}, [] { return std::uint64_t{1} << 50U; });
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("raise that, name a smaller model"), std::string::npos) << refused.error().message;
}

// Of what a model takes that is loaded while others serve, and of what is refused before anything is read.
TEST(LoadModels, ADraftTakesWhatIsSaidOfItBefore) {
  ModelOptions options;
  options.draft = BRAID_SOURCE_DIR "/models/demo-draft-q8_0.gguf";
  const auto team = make_team(options).value();
  const Loading loading{.max_batch = 4, .team = team.get()};
  const files::GgufFile file = open_model("").value();
  const OpenDraft open = open_draft(options, file, loading).value();
  LoadedModel loaded = load_weights(options, file, loading).value();
  ASSERT_NE(loaded.draft, nullptr);
  EXPECT_EQ(open.fixed_bytes, loaded.draft->model().weight_bytes() + loaded.draft->model().workspace_bytes());
  EXPECT_EQ(open.block_bytes, loaded.draft->block_bytes());
  EXPECT_GT(loaded.draft->model().workspace_bytes(), 0U);

  Loading crowded = loading;
  crowded.untouched = std::uint64_t{1} << 50U;
  const auto refused = load_weights(options, file, crowded);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find(" for its draft, but "), std::string::npos) << refused.error().message;
}

TEST(PlanKv, TakesWhatItMay) {
  KvDemand d = demand();
  d.max_batch = 256;
  EXPECT_EQ(plan_kv(d).value().blocks, 500);
  EXPECT_EQ(plan_kv(d).value().bytes, 500'000U);
  EXPECT_EQ(plan_kv(d).value().context, 1'000);
}

TEST(PlanKv, SaysToHowManyThePoolMayGrow) {
  KvDemand d = demand();
  d.bytes = 100'000;
  EXPECT_EQ(plan_kv(d).value().most_blocks, 100);
  d.most_bytes = 150'000;
  EXPECT_EQ(plan_kv(d).value().blocks, 100);
  EXPECT_EQ(plan_kv(d).value().most_blocks, 150);
  d.most_bytes = 50'000'000;
  EXPECT_EQ(plan_kv(d).value().most_blocks, 4 * 63) << "what the batch can use";
}

TEST(PlanKv, NeverMoreThanTheBatchCanUse) { EXPECT_EQ(plan_kv(demand()).value().blocks, 4 * 63); }

TEST(PlanKv, LowersTheModelsContextToWhatFits) {
  KvDemand d = demand();
  d.bytes = 10'000;
  EXPECT_EQ(plan_kv(d).value().context, 160);
  EXPECT_EQ(plan_kv(d).value().blocks, 10);
}

TEST(PlanKv, RefusesAnExplicitContextThatDoesNotFit) {
  KvDemand d = demand();
  d.bytes = 10'000;
  d.asked_context = 161;
  ASSERT_TRUE(plan_kv(d).has_error());
  EXPECT_NE(plan_kv(d).error().message.find("holds 160 tokens"), std::string::npos) << plan_kv(d).error().message;
}

TEST(PlanKv, AWindowThatFitsBoundsNoContext) {
  KvDemand d = demand();
  d.bytes = 10'000;
  d.groups = {{.window = 8 * 16}};  // ten blocks at once
  EXPECT_EQ(plan_kv(d).value().context, 1'000);
  EXPECT_EQ(plan_kv(d).value().blocks, 10);
  d.asked_context = 161;
  EXPECT_EQ(plan_kv(d).value().context, 161);
  d.groups = {{.window = 9 * 16}};
  EXPECT_TRUE(plan_kv(d).has_error());
}

TEST(PlanKv, AWindowOfSomeLayersLeavesMoreToTheOthers) {
  KvDemand d = demand();
  d.bytes = 60'000;
  d.groups = {{}, {.window = 8 * 16}};
  EXPECT_EQ(plan_kv(d).value().context, 50 * 16) << "fifty of one group, ten of the other";
  EXPECT_EQ(plan_kv(d).value().tokens, 50 * 16);
}

TEST(KvMemory, RefusesMoreThanThereIs) {
  const MemoryLeft left{1'000'000, "ulimit -v"};
  const auto refused = kv_memory(left, 1'000'001);
  ASSERT_TRUE(refused.has_error());
  EXPECT_EQ(refused.error().message, "--kv-memory 977 KiB is more than the 977 KiB that ulimit -v leaves beside the model");
  EXPECT_EQ(kv_memory(left, 1'000'000).value(), 1'000'000U);
}

TEST(PlanKv, RefusesLessThanABlock) {
  KvDemand d = demand();
  d.bytes = 999;
  EXPECT_TRUE(plan_kv(d).has_error());
}

TEST(DivideMemory, GivesEqualPartsAndWhatOneCannotUseToTheOthers) {
  using Parts = std::vector<std::uint64_t>;
  EXPECT_EQ(divide_memory(900, Parts{1'000, 1'000, 1'000}), (Parts{300, 300, 300}));
  EXPECT_EQ(divide_memory(900, Parts{1'000, 100, 1'000}), (Parts{400, 100, 400}));
  EXPECT_EQ(divide_memory(900, Parts{350, 100, 1'000}), (Parts{350, 100, 450}));
  EXPECT_EQ(divide_memory(900, Parts{10, 20, 30}), (Parts{10, 20, 30}));
  EXPECT_EQ(divide_memory(900, Parts{1'000}), Parts{900});
}

TEST(DivideMemory, APoolCanUseItsBatchOfWholeContexts) { EXPECT_EQ(most_usable(demand()), 4U * 63U * 1'000U); }

}  // namespace
}  // namespace braid::app
