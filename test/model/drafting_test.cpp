// Where guesses come from: a text's own repetitions, a prediction, a constraint that leaves no choice.
#include "model/drafting/constraint_path.h"
#include "model/drafting/drafts.h"
#include "model/drafting/match_finder.h"
#include "model/drafting/sequence_text.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <stdexcept>

namespace braid::model::test {
namespace {

using testing::ElementsAre;

TEST(MatchFinder, FindsTheLongestOfTheLatestPlaces) {
  MatchFinder finder;
  finder.append(std::vector<TokenId>{9, 1, 2, 3, 50, 8, 1, 2, 3, 60, 1, 2, 3, 70, 8, 1, 2, 3});
  const MatchFinder::Match match = finder.find();
  EXPECT_EQ(match.next, 9U) << "after 8 1 2 3";
  EXPECT_EQ(match.common, 4U);
}

TEST(MatchFinder, FindsNothingInTextThatDoesNotRepeat) {
  MatchFinder finder;
  for (TokenId token = 0; token < 1000; ++token) {
    finder.append(token);
    EXPECT_EQ(finder.find().common, 0U);
  }
}

// Against a search of all places, while the text grows and its index with it.
TEST(MatchFinder, AgreesWithASearchOfAllPlaces) {
  std::mt19937 random(1);
  MatchFinder finder;
  std::vector<TokenId> text;
  for (int i = 0; i < 3000; ++i) {
    const auto token = static_cast<TokenId>(random() % 40);
    text.push_back(token);
    finder.append(token);
    std::size_t most = 0;
    for (std::size_t end = 1; end < text.size(); ++end) {
      std::size_t common = 0;
      while (common < std::min(end, MatchFinder::kMostCommon) && text[end - 1 - common] == text[text.size() - 1 - common]) ++common;
      if (common >= MatchFinder::kGram) most = std::max(most, common);
    }
    const MatchFinder::Match match = finder.find();
    ASSERT_EQ(match.common, most) << i;
    if (most > 0) {
      ASSERT_TRUE(std::equal(text.end() - static_cast<std::ptrdiff_t>(most), text.end(),
                             text.begin() + static_cast<std::ptrdiff_t>(match.next - most)));
    }
  }
}

step::SlotStart start_with(DraftMethod method, std::vector<TokenId> prediction = {}) {
  step::SlotStart start{.slot = 0, .sampling = {}, .stop = {.max_tokens = 100, .stop_token_ids = {}}};
  start.speculation.method = method;
  if (!prediction.empty()) start.speculation.prediction = std::make_shared<const std::vector<TokenId>>(std::move(prediction));
  return start;
}

std::vector<TokenId> guess(SequenceText& text, std::size_t room, DraftSource* source = nullptr) {
  std::vector<TokenId> guesses(room);
  const SequenceText::Guessed guessed = text.guess(guesses);
  guesses.resize(guessed.count);
  if (source != nullptr) *source = guessed.source;
  return guesses;
}

TEST(SequenceText, GuessesWhatCameAfterTheSameTokens) {
  SequenceText text;
  text.start(start_with(DraftMethod::kNgram), std::vector<TokenId>{1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5});
  EXPECT_THAT(guess(text, 4), ElementsAre(6, 7, 8, 9));
  text.append(6);
  EXPECT_THAT(guess(text, 2), ElementsAre(7, 8));
  text.append(100);
  EXPECT_THAT(guess(text, 4), ElementsAre());
}

TEST(SequenceText, TakesLittleFromAPlaceWithLittleInCommon) {
  SequenceText text;
  text.start(start_with(DraftMethod::kNgram), std::vector<TokenId>{1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 2, 3});
  EXPECT_THAT(guess(text, 8), ElementsAre(4, 5));
}

TEST(SequenceText, GoesRoundWithAPeriod) {
  SequenceText text;
  text.start(start_with(DraftMethod::kNgram), std::vector<TokenId>{1, 2, 1, 2, 1, 2, 1, 2, 1, 2});
  EXPECT_THAT(guess(text, 7), ElementsAre(1, 2, 1, 2, 1, 2, 1));
}

TEST(SequenceText, FollowsAPredictionAndComesBackToIt) {
  SequenceText text;
  DraftSource source{};
  text.start(start_with(DraftMethod::kAuto, {10, 11, 12, 13, 14, 15, 16, 17}), std::vector<TokenId>{1, 2, 3});
  text.append(10);
  EXPECT_THAT(guess(text, 3, &source), ElementsAre(11, 12, 13));
  EXPECT_EQ(source, DraftSource::kPrediction);
  for (const TokenId token : {99, 98, 12, 13}) text.append(token);
  EXPECT_THAT(guess(text, 3), ElementsAre()) << "two tokens are too few to know the place by";
  text.append(14);
  EXPECT_THAT(guess(text, 9, &source), ElementsAre(15, 16)) << "and of three little is taken";
  EXPECT_EQ(source, DraftSource::kPrediction);
  text.append(15);
  EXPECT_THAT(guess(text, 9), ElementsAre(16, 17)) << "it ends where the prediction does";
}

TEST(SequenceText, OfAPredictionIsAskedUnlessNothingIsGuessed) {
  for (const DraftMethod method : {DraftMethod::kDraft, DraftMethod::kOff}) {
    SequenceText text;
    text.start(start_with(method, {10, 11, 12}), std::vector<TokenId>{1, 2, 3, 1, 2, 3, 1, 2, 3});
    text.append(10);
    EXPECT_EQ(guess(text, 3).size(), method == DraftMethod::kOff ? 0U : 2U);
  }
}

TEST(SequenceText, ComesBackAfterAPreemptionWhereItWas) {
  SequenceText text;
  step::SlotStart start = start_with(DraftMethod::kAuto, {10, 11, 12, 13});
  start.generated = 2;
  text.start(start, std::vector<TokenId>{1, 2, 3, 10, 11});
  EXPECT_THAT(guess(text, 8), ElementsAre(12, 13));
  EXPECT_THAT(text.tokens(), ElementsAre(1, 2, 3, 10, 11));
}

step::RecentAnswers recent_of(std::vector<std::vector<TokenId>> answers) {
  auto recent = std::make_shared<std::vector<std::shared_ptr<const step::AnswerAutomaton>>>();
  for (std::vector<TokenId>& answer : answers) recent->push_back(std::make_shared<const step::AnswerAutomaton>(std::move(answer)));
  return recent;
}

TEST(SequenceText, GuessesFromTheRecentAnswerThatHasMostInCommon) {
  SequenceText text;
  DraftSource source{};
  step::SlotStart start = start_with(DraftMethod::kAuto);
  start.recent = recent_of({{4, 1, 2, 3, 50, 51, 52}, {9, 8, 1, 2, 3, 60, 61, 62}});
  text.start(start, std::vector<TokenId>{5, 1, 2, 3, 40, 41, 9, 8, 1, 2, 3});
  EXPECT_THAT(guess(text, 8, &source), ElementsAre(60, 61, 62)) << "five tokens in common, with its own text three";
  EXPECT_EQ(source, DraftSource::kSuffix);
  for (const TokenId token : {60, 7, 7, 4, 1, 2, 3}) text.append(token);
  EXPECT_THAT(guess(text, 2), ElementsAre(50, 51));
  start.speculation.method = DraftMethod::kNgram;
  text.start(start, std::vector<TokenId>{5, 1, 2, 3, 40, 41, 9, 8, 1, 2, 3});
  EXPECT_THAT(guess(text, 8, &source), ElementsAre(40, 41)) << "others' answers are not looked at";
  start.speculation.method = DraftMethod::kSuffix;
  text.start(start, std::vector<TokenId>{1, 2, 3, 40, 41, 1, 2, 3, 40, 41});
  EXPECT_THAT(guess(text, 8), ElementsAre()) << "nor its own text";
}

// 7, then 8 or 9, then 3, then the end, 2.
class Path final : public ConstraintState {
 public:
  void fill_mask(std::span<std::uint32_t> allowed) override {
    constexpr std::uint32_t kMasks[] = {1U << 7, 1U << 8 | 1U << 9, 1U << 3, 1U << 2};
    std::ranges::fill(allowed, 0U);
    allowed[0] = kMasks[std::min(place_, 3)];
  }
  void accept(TokenId) override { ++place_; }
  std::unique_ptr<ConstraintState> copy() const override { return std::make_unique<Path>(*this); }

 private:
  int place_ = 0;
};

std::vector<TokenId> kept(std::vector<TokenId> guesses, std::size_t room) {
  Path path;
  const std::size_t count = guesses.size();
  guesses.resize(room);
  std::vector<DraftSource> sources(room, DraftSource::kDraft);
  std::vector<std::uint32_t> mask(1);
  guesses.resize(keep_to_constraint(path, guesses, count, sources, mask));
  return guesses;
}

TEST(ConstraintPath, CutsWhatIsNotAllowedAndAddsWhatAloneIs) {
  EXPECT_THAT(kept({}, 4), ElementsAre(7)) << "then there is a choice";
  EXPECT_THAT(kept({7, 8}, 4), ElementsAre(7, 8, 3, 2));
  EXPECT_THAT(kept({7, 5, 3}, 4), ElementsAre(7));
  EXPECT_THAT(kept({4, 9, 3}, 4), ElementsAre(7)) << "what was guessed behind another token is void";
  EXPECT_THAT(kept({7, 9}, 2), ElementsAre(7, 9));
  EXPECT_THAT(kept({7, 9}, 3), ElementsAre(7, 9, 3));
}

// What comes after the 7.
class Paths final : public Constraint {
 public:
  std::unique_ptr<ConstraintState> start(std::span<const TokenId>) const override {
    auto path = std::make_unique<Path>();
    path->accept(7);
    return path;
  }
};

class Throwing final : public Drafter {
 public:
  void draft(std::span<DraftWish> wishes) override {
    ++asked;
    if (throws) throw std::runtime_error("no");
    wishes[0].guesses[0] = guess;
    wishes[0].count = 1;
  }
  void give_up() override { ++given_up; }
  bool throws = true;
  TokenId guess = 5;
  int given_up = 0;
  int asked = 0;
};

TEST(Drafts, OfADrafterThatThrowsAreMissingAndItIsNotAskedForEver) {
  const auto drafter = std::make_shared<Throwing>();
  Drafts drafts(1, 100, drafter);
  std::vector<Slot> slots(1);
  const step::SlotStart start = start_with(DraftMethod::kDraft);
  slots[0].start(start, {}, {});
  drafts.start(start, {});
  const auto make = [&] {
    drafts.clear();
    drafts.add(0, 4, {});
    drafts.make(slots);
  };
  make();
  EXPECT_TRUE(drafts.of(0).empty());
  EXPECT_TRUE(drafts.failure());
  drafter->throws = false;
  make();
  EXPECT_THAT(drafts.of(0), ElementsAre(5));
  EXPECT_THAT(drafts.sources(0), ElementsAre(DraftSource::kDraft));
  EXPECT_FALSE(drafts.failure());
  drafter->throws = true;
  EXPECT_EQ(drafter->given_up, 0);
  for (int i = 0; i < 9; ++i) make();
  EXPECT_EQ(drafter->asked, 5) << "three failures in a row are enough";
  EXPECT_EQ(drafter->given_up, 1) << "what it keeps may go";
}

TEST(Drafts, SayWhetherTheConstraintCutThem) {
  const auto drafter = std::make_shared<Throwing>();
  drafter->throws = false;
  Drafts drafts(1, 32, drafter);
  std::vector<Slot> slots(1);
  step::SlotStart start = start_with(DraftMethod::kDraft);
  start.constraint = std::make_shared<Paths>();
  slots[0].start(start, {}, {});
  drafts.start(start, {});
  const auto make = [&](TokenId guess) {
    drafter->guess = guess;
    drafts.clear();
    drafts.add(0, 1, {});
    drafts.make(slots);
    return drafts.is_cut(0);
  };
  EXPECT_TRUE(make(5));
  EXPECT_TRUE(drafts.of(0).empty());
  EXPECT_FALSE(make(8));
  EXPECT_THAT(drafts.of(0), ElementsAre(8));
}

}  // namespace
}  // namespace braid::model::test
