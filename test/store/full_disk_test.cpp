// A disk without room: the oldest blocks go, others are left something, and nothing is tried all the time.
#include "store/rig.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace braid::store::test {
namespace {

TEST(DiskFaults, AFullDiskIsLeftAloneForAWhile) {
  const Folder folder;
  Timed timed(folder);
  auto& [now, options] = timed;
  const auto faults = std::make_shared<FaultyIo::Faults>();
  {
    Rig rig(options, std::make_unique<FaultyIo>(faults));
    ASSERT_TRUE(rig.write(Block(1, 0)));
    faults->write_error = ENOSPC;
    faults->torn_after = 700;
    for (std::int32_t i = 1; i < 5; ++i) rig.begin_write(Block(1, i));
    ASSERT_TRUE(rig.loop.run_until([&] { return rig.store->idle(); }));
    EXPECT_EQ(rig.store->stats().write_errors, 1U);
    EXPECT_EQ(rig.store->stats().writes_dropped, 3U);
    faults->write_error = 0;
    EXPECT_FALSE(rig.write(Block(1, 1))) << "not yet";
    now += 31;
    EXPECT_TRUE(rig.write(Block(1, 1)));
    EXPECT_TRUE(rig.read(Block(1, 0)));
    EXPECT_TRUE(rig.read(Block(1, 1)));
    EXPECT_FALSE(rig.read(Block(1, 2)));
  }
  Rig rig(options);
  EXPECT_TRUE(rig.read(Block(1, 0)));
  EXPECT_TRUE(rig.read(Block(1, 1)));
  EXPECT_FALSE(rig.read(Block(1, 2)));
}

TEST(DiskFaults, ADiskThatStaysFullIsNotFilledWithFilesOfNothing) {
  const Folder folder;
  Timed timed(folder);
  auto& [now, options] = timed;
  const auto faults = std::make_shared<FaultyIo::Faults>();
  Rig rig(options, std::make_unique<FaultyIo>(faults));
  ASSERT_TRUE(rig.write(Block(1, 0)));
  faults->write_error = ENOSPC;
  faults->torn_after = 700;
  for (std::int32_t i = 0; i < 20; ++i, now += 31) EXPECT_FALSE(rig.write(Block(1, 1)));
  EXPECT_TRUE(rig.read(Block(1, 0)));
  rig.store->prune();
  EXPECT_TRUE(rig.loop.run_until([&] { return segments(folder).size() == 1; }));
  faults->write_error = 0;
  EXPECT_TRUE(rig.write(Block(1, 1)));
}

// As at its own limit: the oldest go, and something is left to others.
TEST(DiskFaults, ADiskSmallerThanTheLimitIsALimit) {
  const Folder folder;
  StoreOptions options = small_options(folder.path());
  std::atomic<std::uint64_t> taken_by_others = 0;
  constexpr std::uint64_t kDisk = 200'000;
  options.space = [&](const std::string&) {
    return DiskSpace{kDisk - std::min<std::uint64_t>(kDisk, bytes_in(folder) + taken_by_others), kDisk};
  };
  Rig rig(options);
  const auto write = [&](std::int32_t from, std::uint64_t most) {
    for (std::int32_t i = from; i < from + 200; ++i) {
      ASSERT_TRUE(rig.write(Block(i, 0)));
      ASSERT_LE(rig.store->stats().bytes, most) << i;
    }
    EXPECT_FALSE(rig.read(Block(from, 0)));
    for (std::int32_t i = from + 199; i > from + 170; --i) EXPECT_TRUE(rig.read(Block(i, 0))) << i;
  };
  write(0, kDisk * 19 / 20);
  EXPECT_GT(rig.store->stats().bytes, kDisk / 2);
  taken_by_others = 100'000;
  ASSERT_TRUE(rig.write(Block(200, 0)));
  for (std::int32_t i = 201; rig.store->stats().bytes > kDisk * 19 / 20 - taken_by_others; ++i) {
    ASSERT_LT(i, 300) << "it never gives way";
    ASSERT_TRUE(rig.write(Block(i, 0)));
  }
  write(300, kDisk * 19 / 20 - taken_by_others);
  taken_by_others = kDisk;
  for (std::int32_t i = 600; i < 700; ++i) rig.write(Block(i, 0));
  EXPECT_EQ(rig.store->stats().bytes, 0U) << "there is no room at all";
  EXPECT_EQ(rig.store->stats().write_errors, 1U);
}

// A new segment is begun while most files have not been looked through: after a restart, or a takeover.
TEST(DiskFaults, WhatIsStillToBeLookedThroughIsNoRoomTakenByOthers) {
  const Folder folder;
  StoreOptions options = small_options(folder.path());
  {
    Rig rig(options);
    for (std::int32_t i = 0; i < 100; ++i) ASSERT_TRUE(rig.write(Block(i, 0)));
  }
  const std::uint64_t disk = bytes_in(folder) * 3 / 2;
  options.space = [&](const std::string&) { return DiskSpace{disk - bytes_in(folder), disk}; };
  options.scan_patience = std::chrono::milliseconds(0);
  Rig rig(options);
  ASSERT_TRUE(rig.write(Block(100, 0)));
  EXPECT_TRUE(rig.loop.run_until([&] { return rig.store->contains(Block(0, 0).key) || rig.store->stats().pruned > 0; }));
  EXPECT_EQ(rig.store->stats().pruned, 0U);
}

TEST(DiskFaults, OthersAreGivenRoomAlsoWhileNothingIsWritten) {
  const Folder folder;
  StoreOptions options = small_options(folder.path());
  std::atomic<std::uint64_t> taken_by_others = 0;
  constexpr std::uint64_t kDisk = 400'000;
  options.space = [&](const std::string&) {
    return DiskSpace{kDisk - std::min<std::uint64_t>(kDisk, bytes_in(folder) + taken_by_others), kDisk};
  };
  Rig rig(options);
  for (std::int32_t i = 0; i < 150; ++i) ASSERT_TRUE(rig.write(Block(i, 0)));
  taken_by_others = kDisk - bytes_in(folder);
  rig.store->tend();
  EXPECT_TRUE(rig.loop.run_until([&] { return bytes_in(folder) <= kDisk * 19 / 20 - taken_by_others; }));
  EXPECT_FALSE(rig.read(Block(0, 0)));
  EXPECT_TRUE(rig.read(Block(149, 0)));
  taken_by_others = 0;
  for (std::int32_t i = 200; i < 250; ++i) ASSERT_TRUE(rig.write(Block(i, 0)));
  EXPECT_TRUE(rig.read(Block(149, 0))) << "what they have given back is used again";
}

// As where no more files may be open: what is not seen is not taken to be gone.
TEST(DiskFaults, AFolderThatCannotBeListedTellsNothingOfItsRoom) {
  const Folder folder;
  StoreOptions options = small_options(folder.path() + "/cache");
  std::atomic<int> looks = 0;
  std::atomic<std::uint64_t> free = 1 << 30;
  options.space = [&](const std::string&) { return ++looks, DiskSpace{free, 1 << 30}; };
  Rig rig(options);
  for (std::int32_t i = 0; i < 50; ++i) ASSERT_TRUE(rig.write(Block(i, 0)));
  free = 0;
  std::filesystem::rename(options.directory, folder.path() + "/elsewhere");
  const int before = looks;
  for (int i = 0; i < 2; ++i) rig.store->tend();
  ASSERT_TRUE(rig.loop.run_until([&] { return looks == before + 2; }));
  EXPECT_TRUE(rig.read(Block(0, 0))) << "the files are open";
  EXPECT_EQ(rig.store->stats().pruned, 0U);
}

// Whose space tells nothing of it.
TEST(DiskFaults, AQuotaMakesTheOldestGo) {
  const Folder folder;
  Timed timed(folder);
  auto& [now, options] = timed;
  options.limit_bytes = 100'000;
  const auto faults = std::make_shared<FaultyIo::Faults>();
  Rig rig(options, std::make_unique<FaultyIo>(faults));
  for (std::int32_t i = 0; i < 30; ++i) ASSERT_TRUE(rig.write(Block(i, 0)));
  const std::size_t before = segments(folder).size();
  ASSERT_GE(before, 4U);
  faults->write_error = EDQUOT;
  for (std::int32_t i = 0; i < 2; ++i, now += 31) EXPECT_FALSE(rig.write(Block(100, 0)));
  faults->write_error = 0;
  EXPECT_TRUE(rig.loop.run_until([&] { return segments(folder).size() == before - 2; }));
  EXPECT_FALSE(rig.read(Block(0, 0)));
  EXPECT_TRUE(rig.read(Block(29, 0)));
  EXPECT_TRUE(rig.write(Block(100, 0)));
}

// As when a machine without a clock of its own hears what time it is.
TEST(DiskFaults, AClockThatIsSetBackDoesNotProlongThePause) {
  const Folder folder;
  Timed timed(folder);
  auto& [now, options] = timed;
  const auto faults = std::make_shared<FaultyIo::Faults>();
  Rig rig(options, std::make_unique<FaultyIo>(faults));
  faults->write_error = ENOSPC;
  EXPECT_FALSE(rig.write(Block(1, 0)));
  faults->write_error = 0;
  now -= 500'000;
  EXPECT_TRUE(rig.write(Block(1, 0)));
  EXPECT_TRUE(rig.read(Block(1, 0)));
}

}  // namespace
}  // namespace braid::store::test
