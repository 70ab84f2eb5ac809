// What one client was answered: kept by client and salt, found again by any piece of it.
#include "sched/recent_answers.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace braid::sched::test {
namespace {

using step::AnswerAutomaton;

// Tokens at the end of `text` that stand in `answer`.
std::size_t most_common(const std::vector<TokenId>& text, const std::vector<TokenId>& answer) {
  for (std::size_t length = std::min(text.size(), answer.size()); length > 0; --length) {
    const auto end = std::search(answer.begin(), answer.end(), text.end() - static_cast<std::ptrdiff_t>(length), text.end());
    if (end != answer.end()) return length;
  }
  return 0;
}

TEST(AnswerAutomaton, KnowsHowMuchOfATextsEndStandsInTheAnswer) {
  std::mt19937 random(4);
  for (const std::uint32_t tokens : {2U, 5U, 60U}) {
    std::vector<TokenId> answer(120);
    for (TokenId& token : answer) token = static_cast<TokenId>(random() % tokens);
    const AnswerAutomaton automaton(answer);
    AnswerAutomaton::Place place;
    std::vector<TokenId> text;
    for (int i = 0; i < 400; ++i) {
      // Goes along with the answer for a while, then leaves it.
      const auto token =
          random() % 5 > 0 && !automaton.after(place).empty() ? automaton.after(place)[0] : static_cast<TokenId>(random() % (tokens + 1));
      text.push_back(token);
      place = automaton.advance(place, token);
      ASSERT_EQ(place.length, most_common(text, answer)) << tokens << " tokens, after " << i;
      const std::span<const TokenId> after = automaton.after(place);
      const std::size_t end = answer.size() - after.size();
      ASSERT_TRUE(place.length <= end &&
                  std::equal(text.end() - place.length, text.end(), answer.begin() + static_cast<std::ptrdiff_t>(end - place.length)))
          << "what follows stands behind another piece";
    }
  }
}

std::vector<TokenId> answer_of(TokenId key) {
  std::vector<TokenId> answer(20);
  for (std::size_t i = 0; i < answer.size(); ++i) answer[i] = key * 100 + static_cast<TokenId>(i);
  return answer;
}

TEST(RecentAnswers, AreThoseOfTheSameClientAndSalt) {
  RecentAnswers recent;
  recent.add("a", "", answer_of(1));
  recent.add("b", "", answer_of(2));
  recent.add("a", "salt", answer_of(3));
  EXPECT_EQ(recent.of("c", ""), nullptr);
  EXPECT_EQ(recent.of("b", "salt"), nullptr);
  const auto first_of = [&](const char* client, const char* salt) { return (*recent.of(client, salt))[0]->after({})[0]; };
  EXPECT_EQ(first_of("a", ""), 100);
  EXPECT_EQ(first_of("b", ""), 200);
  EXPECT_EQ(first_of("a", "salt"), 300);
}

TEST(RecentAnswers, AreSnapshotsOfTheLatestFew) {
  RecentAnswers recent;
  recent.add("a", "", answer_of(1));
  const step::RecentAnswers before = recent.of("a", "");
  for (TokenId key = 2; key < 20; ++key) recent.add("a", "", answer_of(key));
  EXPECT_EQ(before->size(), 1U);
  const step::RecentAnswers now = recent.of("a", "");
  ASSERT_EQ(now->size(), RecentAnswers::kMostAnswers);
  EXPECT_EQ(now->front()->after({})[0], 1900) << "the latest first";
  recent.add("a", "", std::vector<TokenId>{1, 2});
  EXPECT_EQ(recent.of("a", ""), now) << "too short to tell anything";
}

TEST(RecentAnswers, OfTooManyClientsForgetTheOneThatWasNotAnsweredForLongest) {
  RecentAnswers recent;
  const auto name = [](std::size_t i) { return std::to_string(i); };
  for (std::size_t i = 0; i < RecentAnswers::kMostClients; ++i) recent.add(name(i), "", answer_of(1));
  recent.add(name(0), "", answer_of(2));
  recent.add("new", "", answer_of(3));
  EXPECT_NE(recent.of(name(0), ""), nullptr);
  EXPECT_EQ(recent.of(name(1), ""), nullptr);
  EXPECT_NE(recent.of("new", ""), nullptr);
}

}  // namespace
}  // namespace braid::sched::test
