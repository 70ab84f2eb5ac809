// Whatever the disk does wrong is a miss: never other bytes, never a hang.
#include "store/rig.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <random>
#include <sys/wait.h>
#include <unistd.h>

namespace braid::store::test {
namespace {

void flip_bit(const std::string& file, std::uint64_t bit) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(bit / 8));
  const auto byte = static_cast<char>(stream.get() ^ (1 << (bit % 8)));
  stream.seekp(static_cast<std::streamoff>(bit / 8));
  stream.put(byte);
}

TEST(DiskFaults, AFlippedBitCostsAtMostTheRestOfItsSegment) {
  const Folder folder;
  {
    Rig rig(small_options(folder.path()));
    for (std::int32_t i = 0; i < 8; ++i) ASSERT_TRUE(rig.write(Block(1, i)));
  }
  const std::string file = folder.segments().at(0);
  const std::uint64_t bits = std::filesystem::file_size(file) * 8;
  for (std::uint64_t bit = 5; bit < bits; bit += 997) {
    flip_bit(file, bit);
    {
      Rig rig(small_options(folder.path()));
      int found = 0;
      for (std::int32_t i = 0; i < 8; ++i) found += rig.read(Block(1, i));
      EXPECT_LT(found, 8) << "bit " << bit;
    }
    if (!std::filesystem::exists(file)) {  // the first header: nothing in it could be found
      Rig rig(small_options(folder.path()));
      for (std::int32_t i = 0; i < 8; ++i) ASSERT_TRUE(rig.write(Block(1, i)));
      rig.store.reset();
      std::filesystem::rename(folder.segments().at(0), file);
      continue;
    }
    flip_bit(file, bit);
  }
}

TEST(DiskFaults, ABitThatFlipsWhileTheServerRunsIsAMiss) {
  const Folder folder;
  Rig rig(small_options(folder.path()));
  for (std::int32_t i = 0; i < 4; ++i) ASSERT_TRUE(rig.write(Block(1, i)));
  flip_bit(folder.segments().at(0), 8 * 500);
  EXPECT_FALSE(rig.read(Block(1, 0)));
  for (std::int32_t i = 1; i < 4; ++i) EXPECT_TRUE(rig.read(Block(1, i)));
  EXPECT_EQ(rig.store->stats().read_errors, 1U);
}

TEST(DiskFaults, AFileCutAnywhereKeepsTheRecordsBeforeTheCut) {
  const Folder folder;
  {
    Rig rig(small_options(folder.path()));
    for (std::int32_t i = 0; i < 5; ++i) ASSERT_TRUE(rig.write(Block(1, i)));
  }
  const std::string file = folder.segments().at(0);
  std::uintmax_t end = std::filesystem::file_size(file);
  std::int32_t whole = 5;
  for (std::uintmax_t size = end - 1; size > 3000; size -= 89) {
    std::filesystem::resize_file(file, size);
    Rig rig(small_options(folder.path()));
    while (record_bytes(7, 0, 0, 1000) * static_cast<std::uintmax_t>(whole) > size) --whole;
    std::int32_t found = 0;
    while (found < 5 && rig.read(Block(1, found))) ++found;
    EXPECT_GE(found, whole - 1) << size;
    EXPECT_LT(found, 5);
  }
}

TEST(DiskFaults, AFileThatShrinksWhileTheServerRunsIsAMiss) {
  const Folder folder;
  Rig rig(small_options(folder.path()));
  for (std::int32_t i = 0; i < 4; ++i) ASSERT_TRUE(rig.write(Block(1, i)));
  std::filesystem::resize_file(folder.segments().at(0), 1500);
  EXPECT_TRUE(rig.read(Block(1, 0)));
  for (std::int32_t i = 1; i < 4; ++i) EXPECT_FALSE(rig.read(Block(1, i)));
}

TEST(DiskFaults, AFullDiskIsLeftAloneForAWhile) {
  const Folder folder;
  StoreOptions options = small_options(folder.path());
  std::uint64_t now = 1'000'000;
  options.clock = [&] { return now; };
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

TEST(DiskFaults, AReadErrorIsAMiss) {
  const Folder folder;
  const auto faults = std::make_shared<FaultyIo::Faults>();
  Rig rig(small_options(folder.path()), std::make_unique<FaultyIo>(faults));
  ASSERT_TRUE(rig.write(Block(1, 0)));
  faults->read_error = EIO;
  EXPECT_FALSE(rig.read(Block(1, 0)));
}

TEST(DiskFaults, ARemovedFolderIsForgotten) {
  const Folder folder;
  StoreOptions options = small_options(folder.path());
  std::uint64_t now = 1'000'000;
  options.clock = [&] { return now; };
  Rig rig(options);
  for (std::int32_t i = 0; i < 4; ++i) ASSERT_TRUE(rig.write(Block(1, i)));
  std::filesystem::remove_all(folder.path());
  EXPECT_FALSE(rig.write(Block(1, 4)));
  EXPECT_EQ(rig.store->stats().records, 0U);
  now += 31;
  EXPECT_FALSE(rig.write(Block(1, 5)));
  EXPECT_FALSE(rig.read(Block(1, 0)));
  std::filesystem::create_directory(folder.path());
  now += 31;
  EXPECT_TRUE(rig.write(Block(1, 5))) << "it is back";
  EXPECT_TRUE(rig.read(Block(1, 5)));
}

TEST(DiskFaults, ASecondServerIsRefusedAndLeavesTheFirstAlone) {
  const Folder folder;
  Rig rig(small_options(folder.path()));
  ASSERT_TRUE(rig.write(Block(1, 0)));
  Loop loop;
  const auto second = BlockStore::open(small_options(folder.path()), make_thread_io(1), loop.post());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kIo);
  EXPECT_NE(second.error().message.find("in use"), std::string::npos);
  EXPECT_TRUE(rig.read(Block(1, 0)));
  rig.store.reset();
  EXPECT_TRUE(Rig(small_options(folder.path())).read(Block(1, 0)));
}

TEST(DiskFaults, AFolderThatCannotBeUsedIsAnError) {
  Loop loop;
  EXPECT_FALSE(BlockStore::open(small_options("/proc/braid"), make_thread_io(1), loop.post()));
}

// The child writes as fast as it can and says which blocks are on disk; the parent kills it at any moment.
TEST(DiskFaults, NothingThatWasWrittenIsLostToAKill) {
  const Folder folder;
  std::mt19937 random(1);
  for (std::int32_t round = 0; round < 25; ++round) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      Rig rig(small_options(folder.path()));
      for (std::int32_t i = 0;; ++i)
        if (!rig.write(Block(round, i % 60)) && i < 60) ::_exit(1);
        else if (i < 60 && ::write(pipe[1], &i, sizeof i) != sizeof i) ::_exit(1);
    }
    ::close(pipe[1]);
    ::usleep(static_cast<useconds_t>(random() % 20'000));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status));
    Rig rig(small_options(folder.path()));
    std::int32_t written = 0;
    for (std::int32_t i = 0; ::read(pipe[0], &i, sizeof i) == sizeof i; ++written) EXPECT_TRUE(rig.read(Block(round, i)));
    ::close(pipe[0]);
  }
}

}  // namespace
}  // namespace braid::store::test
