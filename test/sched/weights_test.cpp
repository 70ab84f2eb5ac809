// Newer weights for those who run: what they know is computed again, and nothing of the older ones is used or found.
#include "sched/rig.h"

#include <initializer_list>
#include <optional>

namespace braid::sched::test {
namespace {

Client& begin(Rig& rig, GenerationRequest request) {
  Client& client = rig.submit(std::move(request));
  boost::asio::co_spawn(rig.loop, read_to_end(client), boost::asio::detached);
  return client;
}

AdapterUse newer_of(const AdapterUse& older) {
  const std::uint32_t index = older.index + 1;
  return {index, "adapter " + std::to_string(index)};
}

std::vector<TokenId> continued(const Rig& rig, const Client& client, std::size_t count, std::uint16_t adapter) {
  std::vector<TokenId> known = client.prompt;
  known.insert(known.end(), client.tokens.begin(), client.tokens.begin() + static_cast<std::ptrdiff_t>(count));
  StopRules rest = client.stop;
  rest.max_tokens -= static_cast<std::int32_t>(count);
  std::vector<TokenId> answer(client.tokens.begin(), client.tokens.begin() + static_cast<std::ptrdiff_t>(count));
  const std::vector<TokenId> more = rig.model.expected(known, rest, {.adapter = adapter});
  answer.insert(answer.end(), more.begin(), more.end());
  return answer;
}

// The older weights' answer up to some token, and from there on what the newer ones say of all that.
void expect_changed(const Rig& rig, const Client& client) {
  const std::vector<TokenId> older = rig.model.expected(client.prompt, client.stop, {});
  ASSERT_EQ(client.tokens.size(), older.size());
  const auto same = std::ranges::mismatch(client.tokens, older).in1 - client.tokens.begin();
  EXPECT_LT(static_cast<std::size_t>(same), older.size()) << "it never changed";
  EXPECT_EQ(client.tokens, continued(rig, client, static_cast<std::size_t>(same), 1));
}

TEST(NewerWeights, AreWhatAllWhoWaitAndRunGoOnWith) {
  Rig rig;
  for (int i = 0; i < 30; ++i) rig.start(5 + i % 13, 40 + i);
  ASSERT_TRUE(rig.run_until([&] { return rig.clients[0]->tokens.size() >= 12; }));
  rig.scheduler->change_weights(newer_of);
  rig.run_to_end();
  for (const auto& client : rig.clients) {
    if (!client->finish || client->finish->usage.weight_changes == 0) continue;
    expect_changed(rig, *client);
  }
  EXPECT_EQ(rig.clients[0]->finish->usage.weight_changes, 1);
  EXPECT_EQ(rig.clients[29]->finish->usage.weight_changes, 1) << "it waited";
}

TEST(NewerWeights, ChangeOnceMoreWhileTheLastOnesAreStillOnTheirWay) {
  Rig rig;
  for (int i = 0; i < 4; ++i) rig.start(9, 60);
  ASSERT_TRUE(rig.run_until([&] { return rig.clients[0]->tokens.size() >= 5; }));
  rig.scheduler->change_weights(newer_of);
  rig.scheduler->change_weights([](const AdapterUse&) { return newer_of({}); });
  rig.run_to_end();
  for (const auto& client : rig.clients) {
    EXPECT_EQ(client->finish->usage.weight_changes, 2);
    expect_changed(rig, *client);
  }
}

// Both revisions' blocks may be cached, each for itself.
TEST(NewerWeights, FindNothingThatOlderOnesHaveCached) {
  Rig rig;
  const std::vector<TokenId> prompt = Rig::prompt_of(40, 3);
  const auto ask = [&](std::uint16_t adapter) -> Client& { return begin(rig, Rig::tinted({.adapter = adapter}, prompt, 30)); };
  Client& first = ask(0);
  ASSERT_TRUE(rig.run_until([&] { return first.tokens.size() >= 10; }));
  rig.scheduler->change_weights(newer_of);
  ASSERT_TRUE(rig.run_until([&] { return first.finished(); }));
  expect_changed(rig, first);
  for (const std::uint16_t adapter : std::initializer_list<std::uint16_t>{0, 1, 0, 1}) {
    Client& client = ask(adapter);
    ASSERT_TRUE(rig.run_until([&] { return client.finished(); }));
    rig.expect_right(client);
  }
  rig.run_to_end();
}

// A reader that is behind, and one whose blocks have gone already.
TEST(NewerWeights, ReachWhoIsStalled) {
  SchedulerOptions options = Rig::small_options();
  options.stream_capacity = 8;
  Rig rig(options);
  Client& silent = rig.submit(12, 40);
  ASSERT_TRUE(rig.run_until([&] { return rig.phase(silent) == SequencePhase::kStalled; }));
  rig.scheduler->change_weights(newer_of);
  EXPECT_EQ(rig.phase(silent), SequencePhase::kParked) << "its keys and values are of no use";
  ASSERT_TRUE(rig.run_until([&] { return silent.take(), silent.finished(); }));
  expect_changed(rig, silent);
  rig.run_to_end();
}

// Whoever computed a prompt for others computes it again, and they wait for it or go on by themselves.
TEST(NewerWeights, ReachThoseWhoFollow) {
  SchedulerOptions options = Rig::small_options();
  options.max_batch_tokens = 16;
  Rig rig(options);
  const std::vector<TokenId> prompt = Rig::prompt_of(200, 5);
  for (int i = 0; i < 3; ++i) begin(rig, Rig::tinted({}, prompt, 20));
  ASSERT_TRUE(rig.run_until([&] { return !rig.model.steps().empty(); }));
  rig.scheduler->change_weights(newer_of);
  rig.run_to_end();
  for (const auto& client : rig.clients) EXPECT_EQ(client->tokens, rig.model.expected(prompt, client->stop, {.adapter = 1}));
}

TEST(NewerWeights, AreToldWithTheFirstTokenThatTheyMake) {
  Rig rig;
  GenerationRequest request = Rig::tinted({}, Rig::prompt_of(9, 4), 90);
  request.tells_revisions = true;
  Client& client = begin(rig, std::move(request));
  Client& silent = rig.start(7, 90);
  for (const std::size_t tokens : {std::size_t{10}, std::size_t{40}}) {
    ASSERT_TRUE(rig.run_until([&] { return client.tokens.size() >= tokens; }));
    rig.scheduler->change_weights(newer_of);
  }
  rig.run_to_end();
  EXPECT_TRUE(silent.revisions.empty());
  ASSERT_EQ(client.revisions.size(), 3U);
  ASSERT_EQ(client.tokens.size(), 90U);
  for (std::uint16_t i = 0; i < 3; ++i) {
    const auto& [from, revision] = client.revisions[i];
    EXPECT_EQ(revision, i > 0 ? "adapter " + std::to_string(i) : "");
    const std::size_t end = i < 2 ? client.revisions[i + 1].first : client.tokens.size();
    const std::vector<TokenId> expected = continued(rig, client, from, i);
    EXPECT_TRUE(std::equal(client.tokens.begin(), client.tokens.begin() + static_cast<std::ptrdiff_t>(end), expected.begin())) << revision;
  }
}

// A step that fails in the middle of it costs nobody his answer.
TEST(NewerWeights, ReachWhoseStepHasJustFailed) {
  Rig rig;
  for (int i = 0; i < 5; ++i) rig.start(9 + i, 50);
  ASSERT_TRUE(rig.run_until([&] { return rig.clients[0]->tokens.size() >= 6; }));
  rig.model.fail_next("once");
  const std::size_t before = rig.scheduler->stats().retried_steps;
  ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().retried_steps > before; }));
  rig.scheduler->change_weights(newer_of);
  rig.run_to_end();
  for (const auto& client : rig.clients) expect_changed(rig, *client);
}

// An adapter's: whoever has another one goes on as if nothing had been.
TEST(NewerWeights, AreOfThoseAloneWhoUsedTheOlderOnes) {
  Rig rig;
  const std::vector<TokenId> prompt = Rig::prompt_of(11, 6);
  Client& with = begin(rig, Rig::tinted({.adapter = 1}, prompt, 60));
  Client& without = begin(rig, Rig::tinted({}, prompt, 60));
  Client& ended = begin(rig, Rig::tinted({.adapter = 7}, prompt, 60));
  ASSERT_TRUE(rig.run_until([&] { return ended.tokens.size() >= 8 && with.tokens.size() >= 8 && without.tokens.size() >= 8; }));
  for (const std::uint32_t older : {1U, 2U})
    rig.scheduler->change_weights(
        [older](const AdapterUse& use) { return use.index == older ? std::optional(newer_of(use)) : std::nullopt; });
  rig.scheduler->end_users([](const AdapterUse& use) { return use.index == 7; }, {ErrorCode::kCancelled, "replaced", {}});
  rig.run_to_end();
  EXPECT_EQ(with.finish->usage.weight_changes, 2);
  const std::vector<TokenId> older = rig.model.expected(prompt, with.stop, {.adapter = 1});
  const auto same = static_cast<std::size_t>(std::ranges::mismatch(with.tokens, older).in1 - with.tokens.begin());
  EXPECT_LT(same, older.size());
  EXPECT_EQ(with.tokens, continued(rig, with, same, 3)) << "the second update came while the first was on its way";
  EXPECT_EQ(without.finish->usage.weight_changes, 0);
  EXPECT_EQ(without.tokens, rig.model.expected(prompt, without.stop, {}));
  EXPECT_EQ(ended.finish->reason, FinishReason::kCancelled);
}

// What is said of a prompt is of one revision: who has been told a part of it stays with that, and who has not begins anew.
TEST(NewerWeights, DoNotReachWhoHasBeenToldAPartOfWhatIsSaidOfItsPrompt) {
  SchedulerOptions options = Rig::small_options();
  options.max_batch_tokens = 16;
  options.max_batch = 1;
  Rig rig(options);
  for (int i = 0; i < 2; ++i) {
    GenerationRequest request = Rig::tinted({}, Rig::prompt_of(120, 7 + i), 10);
    request.prompt_logprobs = 0;
    begin(rig, std::move(request));
  }
  ASSERT_TRUE(rig.run_until([&] { return rig.clients[0]->prompt_tokens.size() >= 20; }));
  ASSERT_LT(rig.clients[0]->prompt_tokens.size(), 120U);
  rig.scheduler->change_weights(newer_of);
  rig.run_to_end();
  for (std::uint16_t i = 0; i < 2; ++i) {
    const Client& client = *rig.clients[i];
    EXPECT_EQ(client.finish->usage.weight_changes, i);
    EXPECT_EQ(client.prompt_tokens.size(), 120U);
    EXPECT_EQ(client.tokens, rig.model.expected(client.prompt, client.stop, {.adapter = i}));
  }
}

TEST(NewerWeights, ReachRecurrentStates) {
  SchedulerOptions options = Rig::small_options();
  options.state_blocks = 1;
  Rig rig(options);
  for (int i = 0; i < 6; ++i) rig.start(7 + 5 * i, 45);
  ASSERT_TRUE(rig.run_until([&] { return rig.clients[0]->tokens.size() >= 8; }));
  rig.scheduler->change_weights(newer_of);
  rig.run_to_end();
  for (const auto& client : rig.clients) expect_changed(rig, *client);
}

}  // namespace
}  // namespace braid::sched::test
