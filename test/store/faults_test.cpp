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

// An Io that ends a transfer when the test says so.
class PatientIo final : public Io {
 public:
  explicit PatientIo(std::deque<Transfer>& held) : held_(held) {}
  void submit(Transfer transfer) override { held_.push_back(std::move(transfer)); }
  const char* name() const override { return "patient"; }

 private:
  std::deque<Transfer>& held_;
};

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
  const std::string file = segments(folder).at(0);
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
      std::filesystem::rename(segments(folder).at(0), file);
      continue;
    }
    flip_bit(file, bit);
  }
}

TEST(DiskFaults, AFolderOfAnotherFormatIsEmptied) {
  const Folder folder;
  {
    Rig rig(small_options(folder.path()));
    for (std::int32_t i = 0; i < 4; ++i) ASSERT_TRUE(rig.write(Block(1, i)));
  }
  const std::string file = segments(folder).at(0);
  flip_bit(file, 8 * 7);  // the digit of the magic
  Rig rig(small_options(folder.path()));
  EXPECT_EQ(rig.store->stats().records, 0U);
  for (std::int32_t i = 0; i < 4; ++i) EXPECT_FALSE(rig.read(Block(1, i)));
  EXPECT_TRUE(rig.write(Block(1, 0)));
  EXPECT_TRUE(rig.read(Block(1, 0)));
  while (rig.store->prune()) {
  }
  rig.store.reset();  // waits for the deletions
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(DiskFaults, ABitThatFlipsWhileTheServerRunsIsAMiss) {
  const Folder folder;
  Rig rig(small_options(folder.path()));
  for (std::int32_t i = 0; i < 4; ++i) ASSERT_TRUE(rig.write(Block(1, i)));
  flip_bit(segments(folder).at(0), 8 * 500);
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
  const std::string file = segments(folder).at(0);
  std::uintmax_t end = std::filesystem::file_size(file);
  std::int32_t whole = 5;
  for (std::uintmax_t size = end - 1; size > 3000; size -= 89) {
    std::filesystem::resize_file(file, size);
    Rig rig(small_options(folder.path()));
    while (lengths_of({"a model", {}}, 1000).record_bytes() * static_cast<std::uintmax_t>(whole) > size) --whole;
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
  std::filesystem::resize_file(segments(folder).at(0), 1500);
  EXPECT_TRUE(rig.read(Block(1, 0)));
  for (std::int32_t i = 1; i < 4; ++i) EXPECT_FALSE(rig.read(Block(1, i)));
}

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
  options.space = [&](const std::string&) { return DiskSpace{kDisk - std::min<std::uint64_t>(kDisk, bytes_in(folder) + taken_by_others), kDisk}; };
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
  options.space = [&](const std::string&) { return DiskSpace{kDisk - std::min<std::uint64_t>(kDisk, bytes_in(folder) + taken_by_others), kDisk}; };
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
  Timed timed(folder);
  auto& [now, options] = timed;
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

// A server with longer contexts has written to the folder.
TEST(DiskFaults, ARecordLargerThanTheBuffersIsAMiss) {
  const Folder folder;
  StoreOptions options = small_options(folder.path());
  options.most_tokens = 4000;
  options.buffer_memory = 1 << 20;
  const Block large(1, 999);
  const Block small(1, 0);
  {
    Rig rig(options);
    ASSERT_TRUE(rig.write(large));
    ASSERT_TRUE(rig.write(small));
  }
  Rig rig(small_options(folder.path()));
  EXPECT_FALSE(rig.read(large));
  EXPECT_TRUE(rig.read(small)) << "what lies behind it is found";
}

TEST(DiskFaults, TransfersThatEndAfterTheStoreCallNobody) {
  const Folder folder;
  {
    Rig rig(small_options(folder.path()));
    ASSERT_TRUE(rig.write(Block(1, 0)));
  }
  std::deque<Transfer> held;
  Rig rig(small_options(folder.path()), std::make_unique<PatientIo>(held));
  const Block block(1, 0);
  int called = 0;
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(rig.store->read(block.key, std::make_shared<const Prefix>(block.prefix), block.prefix.tokens.size(),
                                [&](const std::optional<ReadBlock>&) { ++called; }));
  rig.store->on_written([&] { ++called; });
  for (Transfer& transfer : held) transfer.after(5);  // their completions lie in the loop's queue
  rig.store.reset();
  bool reached = false;
  rig.loop.post()([&] { reached = true; });
  ASSERT_TRUE(rig.loop.run_until([&] { return reached; }));
  EXPECT_EQ(called, 0);
}

// The last record's file ends within it, whatever its header says: the scan leaves it out, and what it was is counted as waste.
TEST(DiskFaults, ARecordThatItsFileCutsIsNotOffered) {
  const Folder folder;
  {
    Rig rig(small_options(folder.path()));
    for (std::int32_t i = 0; i < 3; ++i) ASSERT_TRUE(rig.write(Block(1, i)));
  }
  const std::string file = segments(folder).at(0);
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  Rig rig(small_options(folder.path()));
  EXPECT_EQ(rig.store->stats().records, 2U);
  EXPECT_FALSE(rig.store->contains(Block(1, 2).key));
  EXPECT_EQ(rig.store->stats().bytes, std::filesystem::file_size(file));
  EXPECT_TRUE(rig.write(Block(1, 2))) << "to a segment of its own";
  EXPECT_TRUE(rig.read(Block(1, 2)));
}

// Of two records with one key the newer counts, also when the older segment is found later or dropped first.
TEST(DiskFaults, TheSameBlockInTwoSegmentsOutlivesTheOlder) {
  const Folder folder;
  Timed timed(folder);
  auto& [now, options] = timed;
  options.ttl = std::chrono::seconds(100);
  for (int life = 0; life < 2; ++life, now += 101) {
    Rig rig(options);
    ASSERT_TRUE(rig.write(Block(1, 0)));
  }
  now -= 101;
  for (const int patience_ms : {2000, 0}) {
    StoreOptions copy = options;
    copy.scan_patience = std::chrono::milliseconds(patience_ms);
    Rig rig(copy);
    ASSERT_TRUE(rig.loop.run_until([&] { return rig.store->contains(Block(1, 0).key); }));
    while (rig.store->prune()) {
    }
    EXPECT_TRUE(rig.read(Block(1, 0)));
  }
}

}  // namespace
}  // namespace braid::store::test
