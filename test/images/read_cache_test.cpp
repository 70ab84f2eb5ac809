#include "images/read_cache.h"

#include <gtest/gtest.h>
#include <memory>
#include <string>

namespace braid::images {
namespace {

ReadImage image_of(std::size_t values) {
  auto pixels = std::make_shared<Pixels>();
  pixels->values.resize(values);
  return {pixels, {}};
}

TEST(ReadCache, KnowsAFileByItsBytesAndHowItIsRead) {
  ReadCache cache(1000);
  const ReadImage image = image_of(10);
  cache.add(ReadKey::of("abc", {}), image);
  ASSERT_TRUE(cache.find(ReadKey::of(std::string("abc"), {})));
  EXPECT_EQ(cache.find(ReadKey::of("abc", {}))->pixels, image.pixels);
  EXPECT_FALSE(cache.find(ReadKey::of("abd", {})));
  EXPECT_FALSE(cache.find(ReadKey::of("abc", {.detail = ImageDetail::kLow})));
  EXPECT_FALSE(cache.find(ReadKey::of("abc", {.place = 1})));
}

TEST(ReadCache, ForgetsWhatWasUsedLongestAgo) {
  ReadCache cache(1000);  // two of 100 floats
  const auto key = [](const char* name) { return ReadKey::of(name, {}); };
  cache.add(key("a"), image_of(100));
  cache.add(key("b"), image_of(100));
  EXPECT_TRUE(cache.find(key("a")));
  cache.add(key("c"), image_of(100));
  EXPECT_TRUE(cache.find(key("a")));
  EXPECT_FALSE(cache.find(key("b")));
  EXPECT_TRUE(cache.find(key("c")));
  cache.add(key("large"), image_of(251));
  EXPECT_FALSE(cache.find(key("large")));
  EXPECT_TRUE(cache.find(key("c")));
}

}  // namespace
}  // namespace braid::images
