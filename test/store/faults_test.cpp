// Whatever the disk does wrong is a miss: never other bytes, never a hang.
#include "store/rig.h"

#include <cerrno>
#include <csignal>
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
        if (!rig.write(Block(round, i % 60)) && i < 60)
          ::_exit(1);
        else if (i < 60 && ::write(pipe[1], &i, sizeof i) != sizeof i)
          ::_exit(1);
    }
    ::close(pipe[1]);
    ::usleep(static_cast<useconds_t>(random() % 20'000));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status));
    Rig rig(small_options(folder.path()));
    for (std::int32_t i = 0; ::read(pipe[0], &i, sizeof i) == sizeof i;) EXPECT_TRUE(rig.read(Block(round, i)));
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
