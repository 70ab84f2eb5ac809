#include "sched/progress.h"

#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace braid::sched::test {
namespace {

constexpr std::int32_t kBlock = 4;

TEST(Progress, ARowThatVerifiesIsKnownOnlyWhenItIsBack) {
  Progress progress(kBlock);
  const Advance prompt{10, 10, 1, 1};
  const Advance verify{1, 4, 1, 4};
  progress.plan(prompt);
  progress.plan(verify);
  EXPECT_EQ(progress.least(), 11);
  EXPECT_EQ(progress.most(), 14);
  EXPECT_EQ(progress.least_pending(), 2);
  EXPECT_EQ(progress.most_pending(), 5);
  progress.came_back(prompt);
  progress.came_back(prompt, 0, 10);
  EXPECT_FALSE(progress.leave_step());
  progress.plan(verify);
  EXPECT_EQ(progress.least(), 12);
  EXPECT_EQ(progress.most(), 18);
  progress.came_back(verify);
  progress.came_back(verify, 10, 13);
  EXPECT_FALSE(progress.leave_step());
  EXPECT_EQ(progress.computed(), 13);
  EXPECT_EQ(progress.least(), 14);
  EXPECT_EQ(progress.most(), 17);
  EXPECT_EQ(progress.most_pending(), 4);
  progress.came_back(verify);
  progress.came_back(verify, 13, 14);
  EXPECT_TRUE(progress.leave_step());
  EXPECT_EQ(progress.planned(), 14);
}

TEST(Progress, RewindingKeepsWhatCameBack) {
  Progress progress(kBlock);
  progress.find(2);
  progress.reuse(3);
  progress.plan({6, 6, 0, 0});
  progress.came_back({6, 6, 0, 0});
  progress.leave_step();
  progress.rewind();
  EXPECT_EQ(progress.planned(), 8);
  EXPECT_EQ(progress.take_reused(), 8) << "what was copied by the step that failed is not there";
  EXPECT_EQ(progress.reused(), 0);
  progress.clear();
  EXPECT_EQ(progress.planned() + progress.published() + progress.computed(), 0);
}

// Random rows, two steps in flight, failures and rewinds, against the true position that the strand knows.
TEST(Progress, TheTruthIsAlwaysBetweenLeastAndMost) {
  struct Row {
    Advance advance;
    std::int32_t true_begin;
    std::int32_t true_end;
  };
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto pick = [&](int below) { return static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(below)); };
    Progress progress(kBlock);
    std::vector<Row> posted;
    std::int32_t truth = 0;
    for (int i = 0; i < 500; ++i) {
      if (posted.size() < 2 && pick(2) == 0) {
        const std::int32_t drafts = pick(5);
        const std::int32_t advanced = 1 + pick(drafts + 1);
        ASSERT_LE(progress.least(), truth);
        ASSERT_GE(progress.most(), truth);
        posted.push_back({{1, 1 + drafts, 1, 1 + drafts}, truth, truth + advanced});
        truth += advanced;
        progress.plan(posted.back().advance);
      } else if (!posted.empty() && pick(20) == 0) {
        for (const Row& row : posted) {  // the first one threw, and what comes after it is void
          progress.came_back(row.advance);
          progress.leave_step();
        }
        posted.clear();
        progress.rewind();
        truth = progress.computed();
      } else if (!posted.empty()) {
        const Row row = posted.front();
        posted.erase(posted.begin());
        progress.came_back(row.advance);
        progress.came_back(row.advance, row.true_begin, row.true_end);
        ASSERT_EQ(progress.leave_step(), posted.empty());
        while (progress.published_positions() + kBlock <= progress.computed()) progress.publish();
        while ((progress.saved() + 1) * kBlock <= progress.computed() && pick(2) == 0) progress.save();
      }
      if (!posted.empty()) continue;
      ASSERT_EQ(progress.planned(), truth);
      ASSERT_EQ(progress.least_pending() + progress.most_pending(), 0);
    }
  }
}

}  // namespace
}  // namespace braid::sched::test
