// --kv-verify: what the cache holds is computed and compared.
#include "sched/disk_rig.h"

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace braid::sched::test {
namespace {

TEST(DiskTier, VerifyingComputesAndComparesEveryHit) {
  const Folder folder;
  SchedulerOptions options = tier_options(100, true);
  const auto prompt = Rig::prompt_of(50, 1);
  leave_on_disk(prompt, folder.path(), options);
  options.kv_verify = true;
  Server server(folder.path(), options);
  EXPECT_EQ(server.cached(prompt), 0);
  EXPECT_EQ(server.cached(prompt), 0);
  server.rig->run_to_end();
  EXPECT_EQ(server.store->stats().reads, 13U) << "52 positions";
  EXPECT_EQ(server.rig->scheduler->stats().cache_verified_blocks, 13U + 13U) << "on disk, then in RAM";
  EXPECT_EQ(server.rig->scheduler->stats().prompt_tokens, 100U);
}

TEST(DiskTier, VerifyingComparesEachGroup) {
  const Folder folder;
  SchedulerOptions options = tier_options(200, true);
  options.groups = {{}, {64, 0}};
  const auto prompt = Rig::prompt_of(50, 1);
  leave_on_disk(prompt, folder.path(), options);
  options.kv_verify = true;
  Server server(folder.path(), options);
  EXPECT_EQ(server.cached(prompt), 0);
  EXPECT_EQ(server.cached(prompt), 0);
  server.rig->run_to_end();
  EXPECT_EQ(server.store->stats().reads, 2 * 13U);
  EXPECT_EQ(server.rig->scheduler->stats().cache_verified_blocks, 2 * (13U + 13U));
}

// What no check on the way can see: a block that was wrong when it was saved.
TEST(DiskTierDeathTest, VerifyingAbortsAtADifference) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  // The process that dies runs this test from its start and removes nothing, so it works within the folder of the one that waits for it.
  constexpr const char* kFolder = "BRAID_TEST_VERIFIED_FOLDER";
  const char* const inherited = std::getenv(kFolder);
  const std::optional<Folder> own = inherited == nullptr ? std::optional<Folder>(std::in_place) : std::nullopt;
  const std::string root = own ? own->path() : inherited;
  ::setenv(kFolder, root.c_str(), 1);
  const auto serve = [&root](const std::string& name, const std::function<void(Rig&)>& spoil) {
    const std::string folder = root + "/" + name;
    std::filesystem::create_directory(folder);
    SchedulerOptions options = tier_options(100, true);
    const auto prompt = Rig::prompt_of(5, 1);  // one block: of several, the first to be read is the first to be compared
    leave_on_disk(prompt, folder, options);
    options.kv_verify = true;
    Server server(folder, options);
    spoil(*server.rig);
    server.cached(prompt);
    server.rig->run_to_end();
  };
  if (own) serve("right", [](Rig&) {});
  EXPECT_DEATH(serve("wrong", [](Rig& rig) { rig.model.spoil_saves(); }),
               "kv-verify: the block in the disk cache of positions 0 to 3 of request");
  ::unsetenv(kFolder);
}

TEST(PrefixCacheDeathTest, VerifyingAbortsAtADifferenceInRam) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto serve = [](bool is_spoilt) {
    SchedulerOptions options = Rig::small_options();
    options.kv_verify = true;
    Rig rig(options);
    rig.complete(Rig::prompt_of(50, 1), 3);
    if (is_spoilt) rig.model.spoil_checks();
    rig.complete(Rig::prompt_of(50, 1), 3);
    rig.complete(Rig::prompt_of(5, 2), 3);
    EXPECT_EQ(rig.scheduler->stats().cache_verified_blocks, 13U);
    rig.run_to_end();
  };
  serve(false);
  EXPECT_DEATH(serve(true), "kv-verify: the block in RAM of positions 0 to 3 of request");
}

}  // namespace
}  // namespace braid::sched::test
