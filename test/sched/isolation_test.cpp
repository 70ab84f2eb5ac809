// A step that throws: whose fault it is fails, everybody else gets the answer he would have got alone.
#include "sched/rig.h"

namespace braid::sched::test {
namespace {

constexpr TokenId kPoison = 7777;  // outside the fake's vocabulary: in prompts only

std::vector<TokenId> poisoned(std::int32_t length, std::int32_t at, std::int32_t seed) {
  std::vector<TokenId> prompt = Rig::prompt_of(length, seed);
  prompt[static_cast<std::size_t>(at)] = kPoison;
  return prompt;
}

void expect_failed(const Client& client) {
  ASSERT_TRUE(client.finished());
  EXPECT_EQ(client.finish->reason, FinishReason::kError);
  ASSERT_TRUE(client.finish->error.has_value());
  EXPECT_EQ(client.finish->error->code, ErrorCode::kInternal);
  EXPECT_EQ(client.finish->error->message, "the model failed in a step: poisoned");
}

// Everybody but those in `guilty` has the right answer, and nothing is left behind.
void expect_isolated(Rig& rig, std::initializer_list<const Client*> guilty) {
  rig.run_to_end();
  for (const auto& client : rig.clients) {
    if (std::ranges::find(guilty, client.get()) != guilty.end()) {
      expect_failed(*client);
    } else {
      rig.expect_right(*client);
    }
  }
  EXPECT_EQ(rig.scheduler->stats().failed_rows, guilty.size());
  EXPECT_TRUE(rig.model.violations().empty());
}

TEST(Isolation, FaultThatDoesNotComeBackCostsNobodyHisAnswer) {
  Rig rig;
  for (int i = 0; i < 6; ++i) rig.start(5 + i, 30);
  ASSERT_TRUE(rig.run_until([&] { return rig.clients[5]->tokens.size() >= 5; }));
  rig.model.fail_next("once");
  expect_isolated(rig, {});
  EXPECT_GE(rig.scheduler->stats().retried_steps, 1U);
}

TEST(Isolation, NewcomerAmongDecodingSequences) {
  for (const bool names_row : {false, true}) {
    Rig rig;
    rig.model.poison(kPoison, names_row);
    for (int i = 0; i < 6; ++i) rig.start(5 + i, 60);
    ASSERT_TRUE(rig.run_until([&] { return rig.clients[5]->tokens.size() >= 5; }));
    const Client& guilty = rig.start(poisoned(9, 4, 99), 20);
    expect_isolated(rig, {&guilty});
  }
}

TEST(Isolation, EverybodyIsNew) {
  for (std::int32_t place = 0; place < 8; ++place) {
    Rig rig;
    rig.model.poison(kPoison);
    for (std::int32_t i = 0; i < 8; ++i) rig.start(i == place ? poisoned(9, 2, i) : Rig::prompt_of(9, i), 20);
    expect_isolated(rig, {rig.clients[static_cast<std::size_t>(place)].get()});
  }
}

TEST(Isolation, SeveralAtOnce) {
  Rig rig;
  rig.model.poison(kPoison);
  for (std::int32_t i = 0; i < 8; ++i) rig.start(i % 3 == 0 ? poisoned(9, 2, i) : Rig::prompt_of(9, i), 20);
  expect_isolated(rig, {rig.clients[0].get(), rig.clients[3].get(), rig.clients[6].get()});
}

// Its first slices are sound, so it looks innocent when a newcomer is in the same step.
TEST(Isolation, NobodyIsBlamedForAnOlderSequence) {
  SchedulerOptions options = Rig::small_options();
  options.max_batch_tokens = 24;
  for (std::int32_t at : {20, 40, 70, 99}) {
    Rig rig(options);
    rig.model.poison(kPoison);
    for (int i = 0; i < 4; ++i) rig.start(5, 60);
    const Client& guilty = rig.start(poisoned(100, at, 99), 20);
    ASSERT_TRUE(rig.run_until([&] { return rig.phase(guilty) == SequencePhase::kPrefill; }));
    rig.start(6, 20);
    rig.start(7, 20);
    expect_isolated(rig, {&guilty});
  }
}

// They come back as prefills of one token, and a long one is before them in rank.
TEST(Isolation, AnswersGoOnAtOnceBesideALongPromptOfBetterPriority) {
  SchedulerOptions options = Rig::small_options();
  options.max_batch_tokens = 24;
  Rig rig(options);
  for (int i = 0; i < 4; ++i) rig.start(5 + i, 100);
  ASSERT_TRUE(rig.run_until([&] { return rig.clients[3]->tokens.size() >= 5; }));
  GenerationRequest request;
  request.prompt = Rig::prompt_of(480, 99);
  request.stop.max_tokens = 4;
  request.priority = -1;
  rig.model.hold();
  const Client& prompt = rig.submit(std::move(request));
  for (int i = 0; i < 4 && rig.phase(prompt) != SequencePhase::kPrefill; ++i) {
    rig.model.allow();
    const std::uint64_t steps = rig.scheduler->stats().steps;
    ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().steps > steps; }));
  }
  ASSERT_EQ(rig.phase(prompt), SequencePhase::kPrefill);
  const std::size_t before = rig.model.steps().size();
  rig.model.fail_next("no luck");
  rig.model.release();
  ASSERT_TRUE(rig.run_until([&] { return rig.take_all(); }));
  const std::vector<StepRecord> steps = rig.model.steps();
  std::size_t longest = 0;
  std::size_t last = before;
  for (std::size_t i = before; i < steps.size() && i < before + 40; ++i) {
    const bool has_answer = std::ranges::any_of(steps[i].rows, [](const step::StepRow& row) { return row.slot == 0; });
    if (has_answer) last = i;
    longest = std::max(longest, i - last);
  }
  EXPECT_LE(longest, 3U);
  EXPECT_EQ(rig.scheduler->stats().retried_steps, 1U);
  for (const auto& client : rig.clients) rig.expect_right(*client);
  rig.run_to_end();
}

TEST(Isolation, FaultInTheMiddleOfAnAnswer) {
  Rig rig;
  for (int i = 0; i < 7; ++i) rig.start(5, 40);
  const Client& guilty = *rig.clients[3];
  ASSERT_TRUE(rig.run_until([&] { return guilty.tokens.size() >= 10; }));
  rig.model.poison(guilty.tokens[9]);
  ASSERT_TRUE(rig.run_until([&] { return guilty.finished(); }));
  rig.model.heal();
  rig.run_to_end();
  expect_failed(guilty);
  EXPECT_GE(guilty.tokens.size(), 10U) << "what was delivered stays";
  for (const auto& client : rig.clients)
    if (client->finish->reason != FinishReason::kError) rig.expect_right(*client);
}

TEST(Isolation, StepsThatThrowUnderPressureLoseNoBlock) {
  SchedulerOptions options = Rig::small_options();
  options.blocks = 40;
  Rig rig(options);
  rig.model.poison(kPoison);
  for (std::int32_t i = 0; i < 12; ++i) rig.start(i % 5 == 2 ? poisoned(9, 2, i) : Rig::prompt_of(9, i), 40);
  ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().preemptions > 0; }));
  rig.model.fail_next("out of luck");
  expect_isolated(rig, {rig.clients[2].get(), rig.clients[7].get()});
}

TEST(Isolation, WithAWindow) {
  SchedulerOptions options = Rig::small_options();
  options.groups = {{.window = 16, .sink = 4}};
  FakeModelOptions model;
  model.groups = options.groups;
  Rig rig(options, model);
  for (std::int32_t i = 0; i < 7; ++i) rig.start(30 + i, 60);
  ASSERT_TRUE(rig.run_until([&] { return rig.clients[6]->tokens.size() >= 20; }));
  rig.model.fail_next("once");
  rig.model.poison(kPoison);
  const Client& guilty = rig.start(poisoned(30, 28, 50), 20);
  expect_isolated(rig, {&guilty});
}

// After each failure it begins anew, and its first slices come back.
TEST(Isolation, WithAWindowInALaterSlice) {
  SchedulerOptions options = Rig::small_options();
  options.groups = {{.window = 32, .sink = 4}};
  options.max_batch_tokens = 24;
  for (const std::int32_t at : {40, 70, 99}) {
    for (const std::int32_t others : {0, 1, 6}) {
      Rig rig(options);
      rig.model.poison(kPoison);
      for (std::int32_t i = 0; i < others; ++i) rig.start(30 + i, 60);
      const Client& guilty = rig.start(poisoned(100, at, 50), 20);
      rig.start(60, 20);
      expect_isolated(rig, {&guilty});
      EXPECT_LE(rig.scheduler->stats().retried_steps, 10U);
    }
  }
}

// Each row of the other one exchanges its block for one in the cache; what it gives back is still to be compared.
TEST(Isolation, BlocksAreComparedBeforeAStepOfItsOwnWritesToThem) {
  SchedulerOptions options = Rig::small_options();
  options.groups = {{.window = 32, .sink = 4}};
  options.block_tokens = 1;
  options.max_batch_tokens = 24;
  options.kv_verify = true;
  Rig rig(options);
  rig.complete(Rig::prompt_of(20, 1), 60);
  rig.model.poison(kPoison);
  Client& other = rig.start(Rig::prompt_of(20, 1), 60);
  ASSERT_TRUE(rig.run_until([&] { return other.tokens.size() >= 2; }));
  const Client& guilty = rig.start(poisoned(100, 70, 2), 5);
  expect_isolated(rig, {&guilty});
  EXPECT_GT(rig.scheduler->stats().cache_verified_blocks, 0U);
}

TEST(Isolation, CancelledWhileUnderSuspicion) {
  Rig rig;
  rig.model.poison(kPoison);
  rig.model.hold();
  for (std::int32_t i = 0; i < 8; ++i) rig.submit(i == 0 ? poisoned(9, 2, i) : Rig::prompt_of(9, i), 20);
  rig.model.allow(1);
  ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().retried_steps == 1; }));
  for (const auto& client : rig.clients) client->ticket.reset();
  rig.model.release();
  rig.run_to_end();
  EXPECT_EQ(rig.scheduler->stats().cancelled, 8U);
}

TEST(Isolation, ModelThatAlwaysThrowsFailsEachRequest) {
  Rig rig;
  rig.model.poison(kPoison);
  for (std::int32_t i = 0; i < 20; ++i) rig.start(poisoned(9, 8, i), 20);
  rig.run_to_end();
  for (const auto& client : rig.clients) expect_failed(*client);
  rig.model.heal();
}

}  // namespace
}  // namespace braid::sched::test
