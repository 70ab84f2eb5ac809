#include "app/memory.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>

namespace braid::app {
namespace {

namespace fs = std::filesystem;

// A folder that stands for "/", removed at the end.
class MemoryRoot : public testing::Test {
 protected:
  MemoryRoot() {
    root_ = fs::path(testing::TempDir()) / (std::string("braid-memory-") + testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(root_);
    write("proc/meminfo", "MemTotal:       2000 kB\nMemFree: 10 kB\nMemAvailable:   1000 kB\n");
  }
  ~MemoryRoot() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::uint64_t available() const { return available_memory(root_.c_str()).value(); }

 private:
  fs::path root_;
};

TEST_F(MemoryRoot, WithoutControlGroupsIsMemAvailable) { EXPECT_EQ(available(), 1000U * 1024U); }

TEST_F(MemoryRoot, VersionTwoLimitCuts) {
  write("proc/self/cgroup", "0::/a/b\n");
  write("sys/fs/cgroup/a/b/memory.max", "600000\n");
  write("sys/fs/cgroup/a/b/memory.current", "250000\n");
  write("sys/fs/cgroup/a/b/memory.stat", "anon 100\nfile 120000\ninactive_file 50000\n");
  EXPECT_EQ(available(), 400000U);
}

TEST_F(MemoryRoot, AncestorsLimitCuts) {
  write("proc/self/cgroup", "0::/a/b\n");
  write("sys/fs/cgroup/a/b/memory.max", "max\n");
  write("sys/fs/cgroup/a/b/memory.current", "250000\n");
  write("sys/fs/cgroup/a/memory.max", "300000\n");
  write("sys/fs/cgroup/a/memory.current", "310000\n");
  EXPECT_EQ(available(), 0U);
}

TEST_F(MemoryRoot, VersionOneLimitCuts) {
  write("proc/self/cgroup", "11:cpu,cpuacct:/x\n7:memory:/x\n");
  write("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "500000\n");
  write("sys/fs/cgroup/memory/x/memory.usage_in_bytes", "200000\n");
  write("sys/fs/cgroup/memory/x/memory.stat", "inactive_file 1\ntotal_inactive_file 100000\n");
  EXPECT_EQ(available(), 400000U);
}

TEST(AvailableMemory, OfThisMachineIsNotNothing) { EXPECT_GT(available_memory().value(), 1U << 20U); }

TEST(AvailableMemory, IsNotNothingWhereItCannotBeKnown) {
  const Result<std::uint64_t> unknown = available_memory("/there/is/no/such/folder");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message,
            "cannot find out how much memory there is: /there/is/no/such/folder/proc/meminfo: No such file or directory");
}

KvDemand demand() {
  KvDemand d;
  d.available = 1'000'000;
  d.block_bytes = 1'000;
  d.block_tokens = 16;
  d.max_batch = 4;
  d.model_context = 1'000;
  return d;
}

TEST(PlanKv, TakesHalfOfWhatIsAvailable) {
  KvDemand d = demand();
  d.max_batch = 256;
  EXPECT_EQ(plan_kv(d).value().blocks, 500);
  EXPECT_EQ(plan_kv(d).value().bytes, 500'000U);
  EXPECT_EQ(plan_kv(d).value().context, 1'000);
}

TEST(PlanKv, NeverMoreThanTheBatchCanUse) { EXPECT_EQ(plan_kv(demand()).value().blocks, 4 * 63); }

TEST(PlanKv, LowersTheModelsContextToWhatFits) {
  KvDemand d = demand();
  d.asked = 10'000;
  EXPECT_EQ(plan_kv(d).value().context, 160);
  EXPECT_EQ(plan_kv(d).value().blocks, 10);
}

TEST(PlanKv, RefusesAnExplicitContextThatDoesNotFit) {
  KvDemand d = demand();
  d.asked = 10'000;
  d.asked_context = 161;
  ASSERT_TRUE(plan_kv(d).has_error());
  EXPECT_NE(plan_kv(d).error().message.find("holds 160 tokens"), std::string::npos) << plan_kv(d).error().message;
}

TEST(PlanKv, AWindowThatFitsBoundsNoContext) {
  KvDemand d = demand();
  d.asked = 10'000;
  d.window_blocks = 10;
  EXPECT_EQ(plan_kv(d).value().context, 1'000);
  EXPECT_EQ(plan_kv(d).value().blocks, 10);
  d.asked_context = 161;
  EXPECT_EQ(plan_kv(d).value().context, 161);
  d.window_blocks = 11;
  EXPECT_TRUE(plan_kv(d).has_error());
}

TEST(PlanKv, RefusesMoreThanThereIs) {
  KvDemand d = demand();
  d.asked = 1'000'001;
  EXPECT_TRUE(plan_kv(d).has_error());
  d.asked = 999;
  EXPECT_TRUE(plan_kv(d).has_error());
}

}  // namespace
}  // namespace braid::app
