#include "store/rig.h"

namespace braid::store::test {
namespace {

std::unique_ptr<Io> io_named(const std::string& name) { return name == "uring" ? make_uring_io() : make_thread_io(2); }

class EachIo : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (io_named(GetParam()) == nullptr) GTEST_SKIP() << "the kernel refuses io_uring";
  }
};
INSTANTIATE_TEST_SUITE_P(BlockStore, EachIo, testing::Values("uring", "threads"));

TEST_P(EachIo, ReadsBackWhatItWroteAlsoAfterARestart) {
  const Folder folder;
  {
    Rig rig(small_options(folder.path()), io_named(GetParam()));
    for (std::int32_t i = 0; i < 20; ++i) EXPECT_TRUE(rig.write(Block(1, i)));
    for (std::int32_t i = 0; i < 20; ++i) EXPECT_TRUE(rig.read(Block(1, i)));
    EXPECT_FALSE(rig.read(Block(2, 0)));
    EXPECT_EQ(rig.store->stats().writes, 20U);
    EXPECT_EQ(rig.store->stats().reads, 20U);
  }
  Rig rig(small_options(folder.path()), io_named(GetParam()));
  EXPECT_EQ(rig.store->stats().records, 20U);
  for (std::int32_t i = 0; i < 20; ++i) EXPECT_TRUE(rig.read(Block(1, i)));
}

TEST_P(EachIo, HandlesManyTransfersAtOnce) {
  const Folder folder;
  StoreOptions options = small_options(folder.path());
  options.buffer_memory = 4 << 20;
  Rig rig(options, io_named(GetParam()));
  for (std::int32_t i = 0; i < 200; ++i) ASSERT_TRUE(rig.begin_write(Block(i, 3)));
  ASSERT_TRUE(rig.loop.run_until([&] { return rig.store->idle(); }));
  int right = 0;
  std::vector<Block> blocks;
  for (std::int32_t i = 0; i < 200; ++i) blocks.emplace_back(i, 3);
  for (const Block& block : blocks)
    ASSERT_TRUE(rig.store->read(block.key, std::make_shared<const Prefix>(block.prefix), block.prefix.tokens.size(),
                                [&](std::optional<ReadBlock> read) { right += read && std::ranges::equal(read->payload, block.payload); }));
  ASSERT_TRUE(rig.loop.run_until([&] { return rig.store->idle(); }));
  EXPECT_EQ(right, 200);
}

TEST_P(EachIo, EndsWithTransfersUnderWay) {
  const Folder folder;
  StoreOptions options = small_options(folder.path());
  options.buffer_memory = 4 << 20;
  for (int round = 0; round < 20; ++round) {
    Rig rig(options, io_named(GetParam()));
    for (std::int32_t i = 0; i < 50; ++i) rig.begin_write(Block(round * 100 + i, 3));
  }
  Rig rig(options, io_named(GetParam()));
  for (std::int32_t i = 0; i < 2000; ++i) rig.read(Block(i, 3));  // what is found is right
  EXPECT_EQ(rig.store->stats().read_errors, 0U) << "a record that is not whole is not found";
  EXPECT_TRUE(rig.write(Block(5000, 3)));
  EXPECT_TRUE(rig.read(Block(5000, 3)));
}

TEST(BlockStore, KeepsScopesIdentitiesAndTextsApart) {
  const Folder folder;
  {
    Rig rig(small_options(folder.path()));
    ASSERT_TRUE(rig.write(Block(1, 2)));
    // The same key, as after a collision.
    const auto reads = [&](const auto& change) {
      Block other(1, 2);
      change(other.prefix);
      const bool found = rig.read(other);
      EXPECT_EQ(rig.read(Block(1, 2)), found) << "what was found wrong once is not offered again";
      EXPECT_TRUE(rig.write(Block(1, 2)));
      return found;
    };
    EXPECT_FALSE(reads([](Prefix& prefix) { prefix.tokens[0] += 1; }));
    EXPECT_FALSE(reads([](Prefix& prefix) { prefix.salt = "tenant"; }));
    EXPECT_FALSE(reads([](Prefix& prefix) { prefix.adapter = "tuned"; }));
    EXPECT_FALSE(reads([](Prefix& prefix) { prefix.media = {{3, 2, {1, 1}}}; }));
    EXPECT_TRUE(reads([](Prefix& prefix) { prefix.media = {{12, 2, {1, 1}}}; })) << "an image behind the block";
  }
  StoreOptions options = small_options(folder.path());
  options.identity = "b model";
  Rig rig(options);
  EXPECT_FALSE(rig.read(Block(1, 2)));
}

TEST(BlockStore, KeepsTheLimitAndDropsTheOldestFirst) {
  const Folder folder;
  StoreOptions options = small_options(folder.path());
  options.limit_bytes = 100'000;
  Rig rig(options);
  for (std::int32_t i = 0; i < 300; ++i) {
    ASSERT_TRUE(rig.write(Block(i, 0)));
    ASSERT_LE(rig.store->stats().bytes, options.limit_bytes);
  }
  EXPECT_FALSE(rig.read(Block(0, 0)));
  EXPECT_TRUE(rig.read(Block(299, 0)));
  EXPECT_TRUE(rig.read(Block(270, 0)));
  EXPECT_GT(rig.store->stats().pruned, 100U);
  while (rig.store->prune()) {
  }
  rig.store.reset();  // waits for the deletions
  EXPECT_LE(bytes_in(folder), options.limit_bytes);
  EXPECT_GT(bytes_in(folder), options.limit_bytes / 2);
}

// Each life leaves a small segment; a large one takes the room of several.
TEST(BlockStore, TheFilesKeepTheLimitThoughSeveralSegmentsGoAtOnce) {
  const Folder folder;
  StoreOptions options = small_options(folder.path());
  options.limit_bytes = 100'000;
  for (std::int32_t i = 0; i < 60; ++i) ASSERT_TRUE(Rig(options).write(Block(i, 0)));
  Rig rig(options);
  for (std::int32_t i = 0; i < 40; ++i) ASSERT_TRUE(rig.write(Block(100 + i, 0)));
  EXPECT_TRUE(rig.loop.run_until([&] { return bytes_in(folder) <= options.limit_bytes; }));
}

// Each segment is an open file. What a server that crashes again and again leaves behind holds little, and goes first.
TEST(BlockStore, ManyShortLivesLeaveABoundedNumberOfFiles) {
  for (const int patience_ms : {2000, 0}) {
    const Folder folder;
    StoreOptions options = small_options(folder.path());
    {
      Rig rig(options);
      for (std::int32_t i = 0; i < 5; ++i) ASSERT_TRUE(rig.write(Block(1000, i)));
    }
    for (std::int32_t i = 0; i < 150; ++i) {
      options.directory = folder.path() + "/" + std::to_string(i);
      ASSERT_TRUE(Rig(options).write(Block(i, 0)));
      const auto number = std::to_string(10'000'000 + i);
      std::filesystem::rename(options.directory + "/00000001.kv", folder.path() + "/" + number + ".kv");
    }
    options.directory = folder.path();
    options.scan_patience = std::chrono::milliseconds(patience_ms);
    Rig rig(options);
    ASSERT_TRUE(rig.loop.run_until([&] { return rig.store->contains(Block(1000, 4).key); }));
    EXPECT_EQ(rig.store->stats().segments, 128U);
    EXPECT_TRUE(rig.write(Block(2000, 0)));
    EXPECT_TRUE(rig.read(Block(149, 0)));
    for (std::int32_t i = 0; i < 5; ++i) EXPECT_TRUE(rig.read(Block(1000, i)));
    rig.store->prune();
    EXPECT_TRUE(rig.loop.run_until([&] { return segments(folder).size() <= 128; }));
  }
}

TEST(BlockStore, ALowerLimitPrunesAtTheNextStart) {
  const Folder folder;
  StoreOptions options = small_options(folder.path());
  {
    Rig rig(options);
    for (std::int32_t i = 0; i < 300; ++i) ASSERT_TRUE(rig.write(Block(i, 0)));
  }
  options.limit_bytes = 200'000;
  Rig rig(options);
  EXPECT_LE(rig.store->stats().bytes, options.limit_bytes);
  EXPECT_TRUE(rig.read(Block(299, 0)));
  rig.store->prune();
  EXPECT_TRUE(rig.loop.run_until([&] { return bytes_in(folder) <= options.limit_bytes; })) << "all files, one after the other";
}

TEST(BlockStore, ALowerLimitHoldsForWhatIsFoundInTheBackground) {
  const Folder folder;
  StoreOptions options = small_options(folder.path());
  for (std::int32_t i = 0; i < 60; ++i) ASSERT_TRUE(Rig(options).write(Block(i, 0)));
  options.limit_bytes = 60'000;
  options.scan_patience = std::chrono::milliseconds(0);
  Rig rig(options);
  EXPECT_TRUE(rig.loop.run_until([&] { return rig.store->contains(Block(59, 0).key) && bytes_in(folder) <= options.limit_bytes; }));
  EXPECT_TRUE(rig.read(Block(59, 0)));
}

TEST(BlockStore, RefusesALimitBelowAFewBlocks) {
  const Folder folder;
  StoreOptions options = small_options(folder.path());
  options.limit_bytes = 5000;
  Loop loop;
  const auto opened = BlockStore::open(options, make_thread_io(1), loop.post());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kInvalidArgument);
}

TEST(BlockStore, ForgetsWhatIsTooOld) {
  const Folder folder;
  Timed timed(folder);
  auto& [now, options] = timed;
  options.ttl = std::chrono::seconds(100);
  {
    Rig rig(options);
    ASSERT_TRUE(rig.write(Block(1, 0)));
    now += 60;
    ASSERT_TRUE(rig.write(Block(2, 0)));
    now += 60;
    EXPECT_FALSE(rig.read(Block(1, 0)));
    EXPECT_TRUE(rig.read(Block(2, 0)));
  }
  {
    Rig rig(options);
    EXPECT_TRUE(rig.read(Block(2, 0))) << "the segment stays for its youngest record";
    now += 60;
    EXPECT_FALSE(rig.read(Block(2, 0)));
    rig.store->prune();
    EXPECT_EQ(rig.store->stats().records, 0U);
    EXPECT_TRUE(rig.loop.run_until([&] { return segments(folder).empty(); }));
  }
}

TEST(BlockStore, FindsTheOldSegmentsInTheBackgroundWhenTimeIsShort) {
  const Folder folder;
  StoreOptions options = small_options(folder.path());
  for (std::int32_t i = 0; i < 10; ++i) {
    Rig rig(options);
    ASSERT_TRUE(rig.write(Block(i, 0)));
  }
  options.scan_patience = std::chrono::milliseconds(0);
  Rig rig(options);
  EXPECT_EQ(rig.store->stats().records, 0U);
  ASSERT_TRUE(rig.loop.run_until([&] { return rig.store->stats().records == 10; }));
  for (std::int32_t i = 0; i < 10; ++i) EXPECT_TRUE(rig.read(Block(i, 0)));
}

TEST(BlockStore, ADraftThatIsDroppedLeavesNothing) {
  const Folder folder;
  Rig rig(small_options(folder.path()));
  const std::size_t buffers = rig.store->free_buffers();
  const Block block(1, 0);
  { const auto record = rig.store->begin_write(block.key, block.prefix.view()); }
  EXPECT_EQ(rig.store->free_buffers(), buffers);
  EXPECT_FALSE(rig.read(block));
  std::vector<BlockStore::PendingRecord> records;
  while (auto record = rig.store->begin_write(block.key, block.prefix.view())) records.push_back(std::move(*record));
  EXPECT_EQ(records.size(), buffers);
  EXPECT_EQ(rig.store->stats().writes_dropped, 1U);
}

}  // namespace
}  // namespace braid::store::test
