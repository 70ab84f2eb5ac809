// A store whose folder another process still writes to, and then no more.
#include "store/rig.h"

namespace braid::store::test {
namespace {

bool is_refused(const Folder& folder) {
  Loop loop;
  return !BlockStore::open(small_options(folder.path()), make_thread_io(1), loop.post());
}

TEST(StoreSuccession, NeitherWritesNorFindsBeforeThePredecessorsStoreIsClosed) {
  const Folder folder;
  Rig first(small_options(folder.path()));
  ASSERT_TRUE(first.write(Block(1, 0)));
  Rig second(small_options(folder.path()), make_thread_io(1), first.store->lock());
  EXPECT_TRUE(second.store->awaits_predecessor());
  EXPECT_EQ(second.store->lock(), nullptr) << "not its own yet, so nobody else's";
  EXPECT_FALSE(second.read(Block(1, 0)));
  EXPECT_FALSE(second.write(Block(2, 0)));
  EXPECT_EQ(second.store->stats().writes_dropped, 1U);
  EXPECT_EQ(segments(folder).size(), 1U);
  EXPECT_TRUE(first.write(Block(1, 1))) << "the first one goes on";
}

TEST(StoreSuccession, FindsAllThatThePredecessorHasWrittenAndWritesBesideIt) {
  const Folder folder;
  Rig first(small_options(folder.path()));
  ASSERT_TRUE(first.write(Block(1, 0)));
  Rig second(small_options(folder.path()), make_thread_io(1), first.store->lock());
  ASSERT_TRUE(first.write(Block(1, 1)));
  first.store.reset();
  EXPECT_TRUE(is_refused(folder)) << "the lock was never free";
  second.store->take_over();
  ASSERT_TRUE(second.loop.run_until([&] { return second.store->stats().records == 2; }));
  EXPECT_TRUE(second.read(Block(1, 0)));
  EXPECT_TRUE(second.read(Block(1, 1)));
  EXPECT_TRUE(second.write(Block(2, 0)));
  EXPECT_EQ(segments(folder).size(), 2U);
  EXPECT_NE(second.store->lock(), nullptr);
  second.store.reset();
  EXPECT_EQ(Rig(small_options(folder.path())).store->stats().records, 3U);
}

TEST(StoreSuccession, AnotherFoldersLockIsNoneOfThisOne) {
  const Folder folder;
  const Folder other;
  Rig first(small_options(folder.path()));
  Rig second(small_options(other.path()), make_thread_io(1), first.store->lock());
  EXPECT_FALSE(second.store->awaits_predecessor());
  EXPECT_TRUE(second.write(Block(1, 0)));
  EXPECT_TRUE(is_refused(other));
}

}  // namespace
}  // namespace braid::store::test
