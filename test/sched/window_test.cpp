// Tokens that see a window only: sequences give up what no later token sees, and are answered alike however they are computed.
#include "sched/rig.h"

#include <algorithm>

namespace braid::sched::test {
namespace {

SchedulerOptions windowed(std::int32_t window, std::int32_t sink) {
  SchedulerOptions options = Rig::small_options();
  options.visibility = {window, sink};
  return options;
}

std::int32_t held(const Rig& rig) {
  const EngineStats stats = rig.scheduler->stats();
  return static_cast<std::int32_t>(stats.blocks_total - stats.blocks_free);
}

TEST(Window, DecodingKeepsOnlyWhatItSees) {
  Rig rig(windowed(16, 4));
  Client& client = rig.submit(10, 400);
  std::int32_t most = 0;
  ASSERT_TRUE(rig.run_until([&] {
    most = std::max(most, held(rig));
    return client.take(), client.finished();
  }));
  rig.expect_right(client);
  EXPECT_LE(most, 1 + 16 / 4 + 2) << "the first block, the window's, and one more at each end";
  rig.run_to_end();
}

TEST(Window, PromptsLongerThanItAreComputedAlikeColdAndWarm) {
  for (const std::int32_t slice : {20, 64, 255}) {
    SchedulerOptions options = windowed(24, 4);
    options.max_batch_tokens = slice;
    Rig rig(options);
    const auto prompt = Rig::prompt_of(200, 1);
    rig.complete(prompt, 30);
    const Client& warm = rig.complete(prompt, 30);
    EXPECT_EQ(warm.tokens, rig.clients[0]->tokens);
    rig.run_to_end();
  }
}

TEST(Window, PreemptedAnswersEqualSoloAnswers) {
  for (const bool prefix_cache : {true, false}) {
    SchedulerOptions options = windowed(30, 2);
    options.blocks = 40;
    options.prefix_cache = prefix_cache;
    Rig rig(options);
    for (int i = 0; i < 20; ++i) rig.start(5 + i % 11, 60 + i);
    rig.run_to_end();
    for (const auto& client : rig.clients) rig.expect_right(*client);
    EXPECT_GT(rig.scheduler->stats().preemptions, 0U);
  }
}

}  // namespace
}  // namespace braid::sched::test
