// Tokens that see a window only: sequences give up what no later token sees, and are answered alike however they are computed.
#include "sched/rig.h"

#include <algorithm>

namespace braid::sched::test {
namespace {

SchedulerOptions windowed(std::int32_t window, std::int32_t sink) {
  SchedulerOptions options = Rig::small_options();
  options.groups = {{window, sink}};
  return options;
}

std::int32_t held(const Rig& rig) {
  const EngineStats stats = rig.scheduler->stats();
  return static_cast<std::int32_t>(stats.blocks_total - stats.blocks_free);
}

TEST(Visibility, NamesTheBlocksThatNoLaterTokenSees) {
  const step::Visibility visible{.window = 100, .sink = 4};
  EXPECT_EQ(visible.invisible(98, 16).last, 0);
  EXPECT_EQ(visible.invisible(130, 16).first, 1) << "the sinks' block stays";
  EXPECT_EQ(visible.invisible(130, 16).last, 1) << "position 31 is seen";
  EXPECT_EQ(visible.invisible(131, 16).last, 2);
  EXPECT_EQ(step::Visibility{}.invisible(5000, 16).last, 0);
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

// What a slice computes goes to the cache before the window passes it: slices may be longer than the window, and steps overlap.
TEST(Window, SlicesLongerThanItAreCachedWhole) {
  for (const std::int32_t slice : {16, 64, 100}) {
    SchedulerOptions options = windowed(24, 4);
    options.max_batch_tokens = slice;
    Rig rig(options);
    const auto prompt = Rig::prompt_of(200, 1);
    rig.complete(prompt, 5);
    EXPECT_EQ(rig.complete(prompt, 5).finish->usage.cached_tokens, 199) << slice;
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

// A pool of nine blocks, of which a sequence alone needs eight at once.
TEST(Window, PromptsLongerThanThePoolAreAnswered) {
  for (const bool prefix_cache : {true, false}) {
    SchedulerOptions options = windowed(16, 4);
    options.blocks = 9;
    options.prefix_cache = prefix_cache;
    Rig rig(options);
    for (int i = 0; i < 5; ++i) rig.start(300 + 7 * i, 40);
    rig.run_to_end();
    for (const auto& client : rig.clients) rig.expect_right(*client);
  }
}

// A prompt's cached beginning may fill the pool: only what its window sees is held until there is room to start.
TEST(Window, PromptsLongerThanThePoolAreAnsweredAfterTheirCachedBeginning) {
  SchedulerOptions options = windowed(16, 4);
  options.blocks = 9;
  Rig rig(options);
  std::vector<TokenId> prompt = Rig::prompt_of(32, 1);
  rig.complete(prompt, 1);
  const std::vector<TokenId> more = Rig::prompt_of(30, 2);
  prompt.insert(prompt.end(), more.begin(), more.end());
  const Client& long_one = rig.complete(prompt, 5);
  rig.expect_right(long_one);
  EXPECT_GE(long_one.finish->usage.cached_tokens, 32);
  rig.expect_right(rig.complete(Rig::prompt_of(20, 3), 5));
  rig.run_to_end();
}

TEST(Window, PromptsLongerThanThePoolAreRefusedWhereTheirWindowDoesNotFit) {
  SchedulerOptions options = windowed(40, 4);
  options.blocks = 9;
  Rig rig(options);
  GenerationRequest request;
  request.prompt = Rig::prompt_of(37, 1);
  request.stop.max_tokens = 5;
  EXPECT_EQ(rig.scheduler->submit(std::move(request)).error().code, ErrorCode::kInvalidArgument);
  rig.run_to_end();
}

// The first slice ends within a block that posted rows have let go of when it is cancelled.
TEST(Window, CancelledPrefillWhoseTailHasBeenPassed) {
  SchedulerOptions options = windowed(4, 4);
  options.max_batch = 2;
  options.max_batch_tokens = 6;
  Rig rig(options);
  rig.model.hold();
  Client& client = rig.submit(60, 5);
  rig.model.allow(1);
  ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().steps == 1; }));
  client.ticket.reset();
  rig.model.release();
  rig.complete(client.prompt, 5);
  rig.run_to_end();
}

// Who waits looks up what it had and holds it, while it lacks a block: the very blocks that the prefill before it lacks.
TEST(Window, NobodyWhoWaitsTakesThePrefillsNextBlock) {
  for (std::int32_t length = 1; length <= 40; ++length) {
    SchedulerOptions options = windowed(10, 0);
    options.blocks = 5;  // what a sequence needs at once
    options.max_batch_tokens = 11;
    Rig rig(options);
    rig.model.hold();
    const Client& first = rig.start(72, 3);
    const Client& second = rig.start(length, 60);
    rig.model.release();
    ASSERT_TRUE(rig.run_until([&] { return first.finished() && second.finished(); })) << length;
    rig.run_to_end();
    rig.expect_right(first);
    rig.expect_right(second);
  }
}

}  // namespace
}  // namespace braid::sched::test
