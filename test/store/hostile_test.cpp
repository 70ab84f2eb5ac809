// What a folder, a device or a loop may do to the store at the worst moment.
#include "store/rig.h"

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

// A server with longer contexts has written to the folder.
TEST(Hostile, ARecordLargerThanTheBuffersIsAMiss) {
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

TEST(Hostile, TransfersThatEndAfterTheStoreCallNobody) {
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
TEST(Hostile, ARecordThatItsFileCutsIsNotOffered) {
  const Folder folder;
  {
    Rig rig(small_options(folder.path()));
    for (std::int32_t i = 0; i < 3; ++i) ASSERT_TRUE(rig.write(Block(1, i)));
  }
  const std::string file = folder.segments().at(0);
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  Rig rig(small_options(folder.path()));
  EXPECT_EQ(rig.store->stats().records, 2U);
  EXPECT_FALSE(rig.store->contains(Block(1, 2).key));
  EXPECT_EQ(rig.store->stats().bytes, std::filesystem::file_size(file));
  EXPECT_TRUE(rig.write(Block(1, 2))) << "to a segment of its own";
  EXPECT_TRUE(rig.read(Block(1, 2)));
}

// Of two records with one key the newer counts, also when the older segment is found later or dropped first.
TEST(Hostile, TheSameBlockInTwoSegmentsOutlivesTheOlder) {
  const Folder folder;
  StoreOptions options = small_options(folder.path());
  std::uint64_t now = 1'000'000;
  options.clock = [&] { return now; };
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
