// Models whose long sequences have other angles from their beginning (LongRoPE): what outgrows the short ones is computed again.
#include "sched/disk_rig.h"
#include "sched/rig.h"

namespace braid::sched::test {
namespace {

SchedulerOptions stretching(std::int32_t beyond) {
  SchedulerOptions options = Rig::small_options();
  options.stretch_beyond = beyond;
  return options;
}

void expect_right_ends(Rig& rig) {
  rig.run_to_end();
  for (const auto& client : rig.clients) rig.expect_right(*client);
}

// Before, at and behind the length, and across it; the fake's answers say with which angles each token was computed.
TEST(LongAngles, AreThoseOfTheWholeSequenceWhenItOutgrowsTheShortOnes) {
  Rig rig(stretching(32));
  for (int prompt = 27; prompt < 36; ++prompt) rig.start(prompt, 12);
  rig.start(3, 100);
  rig.start(200, 5);
  rig.start(32, 1);  // it never becomes longer
  expect_right_ends(rig);
  for (const StepRecord& step : rig.model.steps())
    for (const step::StepRow& row : step.rows) EXPECT_TRUE(row.stretched || row.position + row.count <= 32);
}

TEST(LongAngles, StayApartInThePrefixCache) {
  Rig rig(stretching(32));
  const std::vector<TokenId> prompt = Rig::prompt_of(60, 7);
  for (const std::ptrdiff_t length : {20, 60, 24, 40, 28, 60}) {
    rig.complete({prompt.begin(), prompt.begin() + length}, 14);
  }
  rig.run_to_end();
}

// Who outgrows the short ones has blocks of both kinds there.
TEST(LongAngles, ComeBackFromDiskToSequencesThatHaveThem) {
  const Folder folder;
  SchedulerOptions options = tier_options(100, true);
  options.stretch_beyond = 32;
  for (int life = 0; life < 2; ++life) {
    Server server(folder.path(), options);
    for (const std::int32_t length : {60, 28}) {
      const std::int32_t cached = server.cached(Rig::prompt_of(length, 7), 14);
      EXPECT_EQ(cached, life == 0 ? 0 : (length - 1) / options.block_tokens * options.block_tokens) << length;
    }
    server.rig->run_to_end();
  }
}

TEST(LongAngles, ReachSequencesThatGuess) {
  SchedulerOptions options = stretching(40);
  options.draft_tokens = 6;
  options.draft_always = true;
  Rig rig(options);
  for (int i = 0; i < 8; ++i) rig.start(20 + 3 * i, 45);
  expect_right_ends(rig);
}

TEST(LongAngles, ReachRecurrentStatesWindowsAndWhoIsStalled) {
  for (const bool recurrent : {false, true}) {
    SchedulerOptions options = stretching(32);
    options.stream_capacity = 4;
    options.blocks = 120;
    if (recurrent) {
      options.state_blocks = 1;
    } else {
      options.groups = {{}, {.window = 8, .sink = 0}};
    }
    Rig rig(options);
    Client& silent = rig.submit(26, 30);
    for (int i = 0; i < 6; ++i) rig.start(10 + 4 * i, 40);
    ASSERT_TRUE(rig.run_until([&] { return rig.phase(silent) == SequencePhase::kStalled || rig.phase(silent) == SequencePhase::kParked; }));
    ASSERT_TRUE(rig.run_until([&] { return silent.take(), silent.finished(); }));
    rig.expect_right(silent);
    expect_right_ends(rig);
  }
}

}  // namespace
}  // namespace braid::sched::test
