#include "net/generation/stop_window.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <utility>

namespace braid::net {
namespace {

// The definition: the match that ends first, the longest of those that end together.
std::pair<std::string, bool> cut_at_stop(const std::string& text, const std::vector<std::string>& stops) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::size_t longest = 0;
    for (const std::string& stop : stops)
      if (end >= stop.size() && text.compare(end - stop.size(), stop.size(), stop) == 0) longest = std::max(longest, stop.size());
    if (longest > 0) return {text.substr(0, end - longest), true};
  }
  return {text, false};
}

std::string random_text(std::mt19937& random, std::size_t max_length) {
  static const std::vector<std::string> kAlphabet = {"a", "b", "ab", "é", "😀"};
  std::string text;
  for (std::size_t length = random() % (max_length + 1); length > 0; --length) text += kAlphabet[random() % kAlphabet.size()];
  return text;
}

std::size_t random_piece(std::mt19937& random, const std::string& text, std::size_t begin) {
  std::size_t end = begin + 1 + random() % 6;
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) ++end;
  return std::min(end, text.size()) - begin;
}

TEST(StopWindow, GivesTheSameForAnyCutOfTheText) {
  std::mt19937 random(7);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::string> stops;
    for (std::size_t i = random() % 4; i > 0; --i) {
      std::string stop = random_text(random, 4);
      if (!stop.empty()) stops.push_back(std::move(stop));
    }
    const std::string text = random_text(random, 30);
    StopWindow window(stops);
    std::string out;
    bool found = false;
    for (std::size_t at = 0; at < text.size() && !found;) {
      const std::size_t size = random_piece(random, text, at);
      found = window.feed(std::string_view(text).substr(at, size), out);
      at += size;
    }
    if (!found) window.flush(out);
    ASSERT_EQ(std::make_pair(out, found), cut_at_stop(text, stops)) << "round " << round;
  }
}

TEST(StopWindow, HoldsBackOnlyWhatMayBecomeAStopString) {
  StopWindow window({"</end>", "stop"});
  std::string out;
  EXPECT_FALSE(window.feed("one </e", out));
  EXPECT_EQ(out, "one ");
  EXPECT_FALSE(window.feed("lse st", out));
  EXPECT_EQ(out, "one </else ");
  EXPECT_FALSE(window.feed("", out));
  EXPECT_EQ(out, "one </else ");
  EXPECT_TRUE(window.feed("op and more", out));
  EXPECT_EQ(out, "one </else ");
}

TEST(StopWindow, HandsTextThroughWhenThereIsNoStopString) {
  StopWindow window({});
  std::string out;
  EXPECT_FALSE(window.feed("text", out));
  EXPECT_EQ(out, "text");
}

}  // namespace
}  // namespace braid::net
