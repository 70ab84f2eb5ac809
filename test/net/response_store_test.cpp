// Who keeps his stored responses when there is no room for all.
#include "net/responses/store.h"

#include <gtest/gtest.h>
#include <string>

namespace braid::net::responses {
namespace {

StoredResponse response(std::size_t bytes) { return {{}, {}, std::string(bytes, 'x')}; }

TEST(ResponseStore, NobodyIsPushedOutBelowHisShare) {
  ResponseStore store(8, 100'000);
  for (int i = 0; i < 4; ++i) store.keep("quiet", "quiet-" + std::to_string(i), response(10));
  for (int i = 0; i < 100; ++i) store.keep("busy", "busy-" + std::to_string(i), response(10));
  for (int i = 0; i < 4; ++i) EXPECT_NE(store.find("quiet", "quiet-" + std::to_string(i)), nullptr) << i;
  for (int i = 96; i < 100; ++i) EXPECT_NE(store.find("busy", "busy-" + std::to_string(i)), nullptr) << i;
  EXPECT_EQ(store.find("busy", "busy-95"), nullptr);
}

TEST(ResponseStore, SharesAreOfBytesToo) {
  ResponseStore store(1000, 10'000);
  for (int i = 0; i < 40; ++i) store.keep("small", "small-" + std::to_string(i), response(100));
  for (int i = 0; i < 40; ++i) store.keep("large", "large-" + std::to_string(i), response(2'000));
  for (int i = 0; i < 40; ++i) EXPECT_NE(store.find("small", "small-" + std::to_string(i)), nullptr) << i;
  EXPECT_NE(store.find("large", "large-39"), nullptr);
  EXPECT_EQ(store.find("large", "large-36"), nullptr);
}

TEST(ResponseStore, AloneOneHasAllTheRoomAndLosesWhatHeUsedLongestAgo) {
  ResponseStore store(3, 100'000);
  for (const char* id : {"a", "b", "c"}) store.keep("one", id, response(10));
  EXPECT_NE(store.find("one", "a"), nullptr);
  store.keep("one", "d", response(10));
  EXPECT_EQ(store.find("one", "b"), nullptr);
  EXPECT_NE(store.find("one", "a"), nullptr);
  EXPECT_EQ(store.find("another", "a"), nullptr);
  EXPECT_FALSE(store.erase("another", "a"));
  EXPECT_TRUE(store.erase("one", "a"));
  EXPECT_FALSE(store.erase("one", "a"));
  store.keep("one", "e", response(200'000));
  EXPECT_EQ(store.find("one", "e"), nullptr) << "larger than all the room";
  EXPECT_NE(store.find("one", "d"), nullptr);
}

}  // namespace
}  // namespace braid::net::responses
