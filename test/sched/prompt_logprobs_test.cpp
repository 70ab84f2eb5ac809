// Prompt log-probabilities, and requests that want no token.
#include "sched/rig.h"

namespace braid::sched::test {
namespace {

GenerationRequest scoring_request(std::vector<TokenId> prompt, std::int32_t max_tokens, std::int32_t prompt_logprobs) {
  GenerationRequest request;
  request.prompt = std::move(prompt);
  request.stop.max_tokens = max_tokens;
  request.prompt_logprobs = prompt_logprobs;
  return request;
}

// The fake model says that a token's log-probability is its position, negated.
void expect_whole_prompt(const Client& client, std::size_t tops) {
  ASSERT_EQ(client.prompt_tokens.size(), client.prompt.size());
  EXPECT_FALSE(client.prompt_tokens[0].logprob);
  for (std::size_t i = 0; i < client.prompt.size(); ++i) {
    const PromptToken& token = client.prompt_tokens[i];
    EXPECT_EQ(token.id, client.prompt[i]);
    if (i == 0) continue;
    EXPECT_EQ(token.logprob, -static_cast<float>(i));
    EXPECT_EQ(token.top.size(), tops);
  }
}

TEST(PromptLogprobs, ComeForEveryTokenHoweverThePrefillIsSliced) {
  SchedulerOptions options = Rig::small_options();
  options.max_batch_tokens = 9;
  Rig rig(options);
  for (const std::int32_t length : {1, 2, 8, 9, 10, 50}) {
    Client& client = rig.submit(scoring_request(Rig::prompt_of(length, length), 3, 2));
    ASSERT_TRUE(rig.run_until([&] { return client.take(), client.finished(); }));
    expect_whole_prompt(client, 2);
    rig.expect_right(client);
  }
}

TEST(PromptLogprobs, DoNotReadThePrefixCache) {
  Rig rig;
  rig.complete(Rig::prompt_of(40, 1), 5);
  Client& client = rig.submit(scoring_request(Rig::prompt_of(40, 1), 5, 0));
  ASSERT_TRUE(rig.run_until([&] { return client.take(), client.finished(); }));
  expect_whole_prompt(client, 0);
  EXPECT_EQ(client.finish->usage.cached_tokens, 0);
}

TEST(PromptLogprobs, ComeOnceThoughTheSequenceIsPreempted) {
  SchedulerOptions options = Rig::small_options();
  options.blocks = 40;
  Rig rig(options);
  for (int i = 0; i < 20; ++i) {
    Client& client = rig.submit(scoring_request(Rig::prompt_of(5 + i % 11, i), 40 + i, 1));
    boost::asio::co_spawn(rig.loop, read_to_end(client), boost::asio::detached);
  }
  rig.run_to_end();
  EXPECT_GT(rig.scheduler->stats().preemptions, 0U);
  for (const auto& client : rig.clients) {
    expect_whole_prompt(*client, 1);
    rig.expect_right(*client);
  }
}

TEST(NoTokens, APromptMayFillTheContextAndEndsByLength) {
  Rig rig;
  for (const std::int32_t length : {1, 30, 512}) {
    Client& client = rig.submit(scoring_request(Rig::prompt_of(length, length), 0, length == 30 ? 0 : -1));
    ASSERT_TRUE(rig.run_until([&] { return client.take(), client.finished(); }));
    EXPECT_TRUE(client.tokens.empty());
    EXPECT_EQ(client.finish->reason, FinishReason::kLength);
    EXPECT_EQ(client.finish->usage.completion_tokens, 0);
    if (length == 30) expect_whole_prompt(client, 0);
  }
  rig.run_to_end();
}

}  // namespace
}  // namespace braid::sched::test
