// Memory nodes of a described machine.
#include "kernels/memory_nodes.h"

#include "kernels/thread_team.h"
#include "support/folder.h"

#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
#include <thread>

namespace braid::kernels {
namespace {

void describe(const braid::test::Folder& root, const std::string& node, const std::string& cpus) {
  const std::string folder = root / ("sys/devices/system/node/" + node);
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/cpulist") << cpus << "\n";
}

TEST(MemoryNodes, AreThoseWithProcessorsThatMayBeUsed) {
  const braid::test::Folder root;
  const std::vector<int> cpus = allowed_cpus();
  describe(root, "node10", fmt::format("{}", cpus.front()));
  describe(root, "node2", fmt::format("{}-{}", cpus.front(), cpus.back()));
  describe(root, "node3", fmt::format("{}", cpus.back() + 1));  // of others
  describe(root, "node4", "");                                  // memory alone
  describe(root, "node5", "none");
  describe(root, "nodes", fmt::format("{}", cpus.front()));
  EXPECT_EQ(memory_nodes(root.path()), (std::vector<std::vector<int>>{cpus, {cpus.front()}}));
}

TEST(MemoryNodes, AMachineThatSaysNothingIsOne) {
  const braid::test::Folder root;
  EXPECT_EQ(memory_nodes(root.path()), std::vector<std::vector<int>>{allowed_cpus()});
}

TEST(MemoryNodes, AThreadStaysAndSoDoThoseThatItStarts) {
  const std::vector<int> last{allowed_cpus().back()};
  std::vector<int> of_thread, of_its_thread;
  std::thread([&] {
    stay_on(last);
    of_thread = allowed_cpus();
    std::thread([&] { of_its_thread = allowed_cpus(); }).join();
  }).join();
  EXPECT_EQ(of_thread, last);
  EXPECT_EQ(of_its_thread, last);
}

}  // namespace
}  // namespace braid::kernels
