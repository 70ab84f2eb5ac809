#include "kernels/thread_team.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sched.h>
#include <string>
#include <unistd.h>

namespace braid::kernels {
namespace {

namespace fs = std::filesystem;

// A made-up root folder, removed at the end.
class CpuQuota : public testing::Test {
 protected:
  CpuQuota() : root_(fs::temp_directory_path() / ("braid-quota-" + std::to_string(getpid()))) {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  ~CpuQuota() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  int cpus() const { return usable_cpus(root_.c_str()); }
  static int affinity() {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof(set), &set);
    return CPU_COUNT(&set);
  }

  fs::path root_;
};

TEST_F(CpuQuota, WithoutGroupsTheAffinityMaskCounts) { EXPECT_EQ(cpus(), affinity()); }

TEST_F(CpuQuota, Version2CutsToWholeProcessors) {
  write("proc/self/cgroup", "0::/service\n");
  write("sys/fs/cgroup/service/cpu.max", "150000 100000\n");
  EXPECT_EQ(cpus(), 1);
  write("sys/fs/cgroup/service/cpu.max", "max 100000\n");
  EXPECT_EQ(cpus(), affinity());
}

TEST_F(CpuQuota, Version2ParentsCountToo) {
  write("proc/self/cgroup", "0::/slice/service\n");
  write("sys/fs/cgroup/slice/service/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/slice/cpu.max", "100000 100000\n");
  EXPECT_EQ(cpus(), 1);
}

TEST_F(CpuQuota, Version1ReadsQuotaAndPeriod) {
  write("proc/self/cgroup", "5:memory:/x\n4:cpu,cpuacct:/docker/abc\n");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000\n");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpus(), 1);
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(cpus(), affinity());
}

TEST_F(CpuQuota, UnreadableFilesAreNoLimit) {
  write("proc/self/cgroup", "nonsense\n0::/service\n:::\n");
  write("sys/fs/cgroup/service/cpu.max", "garbage\n");
  EXPECT_EQ(cpus(), affinity());
}

}  // namespace
}  // namespace braid::kernels
