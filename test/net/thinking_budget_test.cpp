// Reasoning that is closed when its budget is used up. The codec's tokens are bytes.
#include "net/generation/thinking_budget.h"

#include "net/fake_codec.h"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

namespace braid::test {
namespace {

const FakeCodec kCodec;

// Allows no byte but one.
class OnlyByte final : public Constraint {
 public:
  struct State final : ConstraintState {
    void fill_mask(std::span<std::uint32_t> allowed) override {
      std::fill(allowed.begin(), allowed.end(), 0);
      allowed['x' / 32] = std::uint32_t{1} << ('x' % 32);
    }
    void accept(TokenId) override {}
    std::unique_ptr<ConstraintState> copy() const override { return std::make_unique<State>(*this); }
  };
  std::unique_ptr<ConstraintState> start(std::span<const TokenId>) const override { return std::make_unique<State>(); }
};

net::GenerationCall call_with(std::int32_t budget, bool begun = false) {
  net::GenerationCall call;
  call.thinking_budget = budget;
  call.syntax.emplace();
  call.syntax->reasoning = {"<think>", "</think>"};
  call.syntax->begins_in_reasoning = begun;
  return call;
}

// A model that wants to write `wish`, and what it may not write gives way to the only byte that it may.
std::string written(const net::GenerationCall& call, std::string_view wish, std::size_t preempted_at = 0) {
  const auto constraint = net::with_thinking_budget(kCodec, call);
  std::vector<TokenId> answer;
  auto state = constraint->start(answer);
  std::array<std::uint32_t, (kVocab + 31) / 32> mask = {};
  const auto allows = [&mask](std::size_t token) { return (mask[token / 32] >> (token % 32) & 1U) != 0; };
  while (!wish.empty()) {
    if (preempted_at > 0 && answer.size() == preempted_at) state = constraint->start(answer);
    state->fill_mask(mask);
    std::size_t token = static_cast<unsigned char>(wish.front());
    if (allows(token)) {
      wish.remove_prefix(1);
    } else {
      for (token = 0; !allows(token);) ++token;
    }
    state->accept(static_cast<TokenId>(token));
    answer.push_back(static_cast<TokenId>(token));
  }
  return {answer.begin(), answer.end()};
}

TEST(ThinkingBudget, ClosesReasoningOnceItIsUsedUp) {
  EXPECT_EQ(written(call_with(3), "<think>abcdef"), "<think>abc</think>def");
  EXPECT_EQ(written(call_with(3), "\n<think>abcdef"), "\n<think>abc</think>def");
  EXPECT_EQ(written(call_with(3, true), "abcdef"), "abc</think>def");
  EXPECT_EQ(written(call_with(0, true), "abc"), "</think>abc");
  EXPECT_EQ(written(call_with(0), "<think>abc"), "<think></think>abc");
}

TEST(ThinkingBudget, LeavesOthersAlone) {
  EXPECT_EQ(written(call_with(9), "<think>a</think>and a long answer"), "<think>a</think>and a long answer");
  EXPECT_EQ(written(call_with(9), "<think>a</think><think>and a long answer"), "<think>a</think><think>and a long answer");
  EXPECT_EQ(written(call_with(1), "an answer about <think>, at length"), "an answer about <think>, at length");
}

TEST(ThinkingBudget, HoldsForAllReasoningTogetherWhereItMayBeAnywhere) {
  net::GenerationCall call = call_with(11);
  call.syntax->reasoning_anywhere = true;
  EXPECT_EQ(written(call, "hm <think>a</think>so <think>bcdef"), "hm <think>a</think>so <think>bc</think>def");
}

TEST(ThinkingBudget, WaitsForTheEndOfACharacter) { EXPECT_EQ(written(call_with(2, true), "aéß"), "aé</think>ß"); }

TEST(ThinkingBudget, SurvivesPreemption) {
  for (std::size_t at = 1; at < 20; ++at) {
    EXPECT_EQ(written(call_with(3), "<think>abcdef", at), "<think>abc</think>def") << at;
  }
}

TEST(ThinkingBudget, GivesWayToTheRequestsOwnConstraint) {
  net::GenerationCall call = call_with(2, true);
  call.constraint = std::make_shared<OnlyByte>();
  EXPECT_EQ(written(call, "xxxxx"), "xxxxx");
}

TEST(ThinkingBudget, IsNoneWithoutReasoningOrLimit) {
  EXPECT_EQ(net::with_thinking_budget(kCodec, call_with(-1)), nullptr);
  net::GenerationCall call = call_with(1);
  call.syntax->reasoning = {};
  EXPECT_EQ(net::with_thinking_budget(kCodec, call), nullptr);
  call.syntax.reset();
  EXPECT_EQ(net::with_thinking_budget(kCodec, call), nullptr);
}

}  // namespace
}  // namespace braid::test
