// Requests for a vector instead of an answer.
#include "sched/rig.h"

#include <algorithm>

namespace braid::sched::test {
namespace {

Client& submit(Rig& rig, std::int32_t length, Pooling pooling) {
  GenerationRequest request;
  request.prompt = Rig::prompt_of(length, 7);
  request.pooling = pooling;
  return rig.submit(std::move(request));
}

const Client& complete(Rig& rig, std::int32_t length, Pooling pooling) {
  Client& client = submit(rig, length, pooling);
  EXPECT_TRUE(rig.run_until([&] { return client.take(), client.finished(); }));
  EXPECT_EQ(client.vector, FakeModel::expected_vector(client.prompt, pooling));
  EXPECT_TRUE(client.tokens.empty());
  EXPECT_EQ(client.finish->reason, FinishReason::kStop);
  EXPECT_EQ(client.finish->usage.completion_tokens, 0);
  return client;
}

TEST(Pooling, OneVectorComesThenTheEnd) {
  Rig rig;
  for (const Pooling pooling : {Pooling::kLast, Pooling::kMean, Pooling::kFirst, Pooling::kEach}) complete(rig, 100, pooling);
  rig.run_to_end();
}

TEST(Pooling, OnlyTheLastTokenIsFoundInTheCache) {
  Rig rig;
  complete(rig, 100, Pooling::kMean);
  EXPECT_EQ(complete(rig, 100, Pooling::kMean).finish->usage.cached_tokens, 0) << "a mean needs all hidden states";
  EXPECT_EQ(complete(rig, 100, Pooling::kFirst).finish->usage.cached_tokens, 0);
  EXPECT_EQ(complete(rig, 100, Pooling::kEach).finish->usage.cached_tokens, 0);
  EXPECT_EQ(complete(rig, 100, Pooling::kLast).finish->usage.cached_tokens, 99);
  rig.run_to_end();
}

TEST(Pooling, AFailedStepBeginsTheMeanAnew) {
  Rig rig;
  rig.model.hold();
  Client& client = submit(rig, 500, Pooling::kMean);
  rig.model.allow(2);
  ASSERT_TRUE(rig.run_until([&] { return rig.model.steps().size() == 2; }));
  rig.model.fail_next("once");
  rig.model.release();
  ASSERT_TRUE(rig.run_until([&] { return client.take(), client.finished(); }));
  EXPECT_EQ(client.vector, FakeModel::expected_vector(client.prompt, Pooling::kMean));
  EXPECT_EQ(rig.scheduler->stats().retried_steps, 1U);
  rig.run_to_end();
}

TEST(Pooling, GivesNoLogProbabilities) {
  Rig rig;
  GenerationRequest request;
  request.prompt = Rig::prompt_of(5, 0);
  request.pooling = Pooling::kLast;
  request.prompt_logprobs = 0;
  const auto ticket = rig.scheduler->submit(std::move(request));
  ASSERT_FALSE(ticket);
  EXPECT_EQ(ticket.error().code, ErrorCode::kInvalidArgument);
  rig.run_to_end();
}

}  // namespace
}  // namespace braid::sched::test
