#include "model/router.h"

#include "kernels/select.h"
#include "model/forward_harness.h"

#include <cmath>
#include <limits>

namespace braid::model::test {
namespace {

using Scoring = RouterShape::Scoring;

RouterShape router_of(std::int32_t experts, std::int32_t chosen, Scoring scoring = Scoring::kSoftmax) {
  RouterShape router;
  router.scoring = scoring;
  router.linear.outputs = experts;
  router.chosen = chosen;
  return router;
}

std::vector<ExpertChoice> choose(const RouterShape& router, std::vector<float> scores, const std::vector<float>& correction = {},
                                 const kernels::KernelTable& table = kernels::best_kernel_table()) {
  std::vector<float> scratch(2 * scores.size());
  std::vector<ExpertChoice> choices(static_cast<std::size_t>(router.chosen));
  choose_experts(table, router, scores, correction, scratch, choices);
  return choices;
}

std::vector<std::int32_t> experts_of(const std::vector<ExpertChoice>& choices) {
  std::vector<std::int32_t> experts;
  for (const ExpertChoice& choice : choices) experts.push_back(choice.expert);
  return experts;
}

using Ids = std::vector<std::int32_t>;

TEST(Router, WeighsTheBestBySoftMax) {
  const auto choices = choose(router_of(4, 2), {0.0F, std::log(5.0F), std::log(3.0F), 0.0F});
  EXPECT_EQ(experts_of(choices), (Ids{1, 2}));
  EXPECT_NEAR(choices[0].weight, 0.5F, 1e-6F);
  EXPECT_NEAR(choices[1].weight, 0.3F, 1e-6F);
}

TEST(Router, NormalisesAndScales) {
  RouterShape router = router_of(4, 2);
  router.normalised = true;
  router.scale = 2.5F;
  const auto choices = choose(router, {0.0F, std::log(5.0F), std::log(3.0F), 0.0F});
  EXPECT_NEAR(choices[0].weight, 2.5F * 5 / 8, 1e-6F);
  EXPECT_NEAR(choices[1].weight, 2.5F * 3 / 8, 1e-6F);
}

TEST(Router, SoftMaxOfTheChosenLeavesTheOthersOut) {
  const auto choices = choose(router_of(4, 2, Scoring::kSoftmaxOfChosen), {9.0F, 1.0F, 9.0F, 8.0F});
  EXPECT_EQ(experts_of(choices), (Ids{0, 2}));
  EXPECT_EQ(choices[0].weight, 0.5F);
}

TEST(Router, ACorrectionChangesTheChoiceAndNotTheWeights) {
  RouterShape router = router_of(3, 1, Scoring::kSigmoid);
  const auto choices = choose(router, {2.0F, 0.0F, 1.0F}, {0.0F, 1.0F, 0.0F});
  EXPECT_EQ(choices[0].expert, 1);
  EXPECT_EQ(choices[0].weight, 0.5F);
}

TEST(Router, ChoosesAmongTheBestGroupsOnly) {
  RouterShape router = router_of(6, 2, Scoring::kSigmoid);
  router.groups = 3;
  const std::vector<float> scores = {3.0F, -9.0F, 2.0F, 2.0F, 1.0F, 1.0F};
  EXPECT_EQ(experts_of(choose(router, scores)), (Ids{0, 1}));  // the group of the best expert
  router.group_best = 2;
  EXPECT_EQ(experts_of(choose(router, scores)), (Ids{2, 3}));  // the group with the best two
  router.chosen_groups = 2;
  EXPECT_EQ(experts_of(choose(router, scores)), (Ids{2, 3}));
}

TEST(Router, TheFirstOfEqualsWins) {
  for (const Scoring scoring : {Scoring::kSoftmax, Scoring::kSigmoid, Scoring::kSoftmaxOfChosen, Scoring::kSparseMixer})
    EXPECT_EQ(experts_of(choose(router_of(5, 2, scoring), std::vector<float>(5, 1.0F))), (Ids{0, 1}));
}

TEST(Router, MixesSparsely) {
  RouterShape router = router_of(3, 2, Scoring::kSparseMixer);
  router.jitter = 0.01F;
  const auto choices = choose(router, {1.0F, 0.99F, 0.5F});
  EXPECT_EQ(experts_of(choices), (Ids{0, 1}));
  EXPECT_NEAR(choices[0].weight, 1.0 / (1.0 + std::exp(-0.01)), 1e-6);  // against the one that is near
  EXPECT_EQ(choices[1].weight, 1.0F);                                   // nobody is
}

TEST(Router, ScoresThatAreNoNumbersGiveWeightsThatAreNone) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const Scoring scoring : {Scoring::kSoftmax, Scoring::kSigmoid, Scoring::kSoftmaxOfChosen, Scoring::kSparseMixer}) {
      const auto choices = choose(router_of(4, 2, scoring), {0.0F, bad, 1.0F, 2.0F});
      EXPECT_EQ(experts_of(choices), (Ids{0, 1}));
      for (const ExpertChoice& choice : choices) EXPECT_TRUE(std::isnan(choice.weight));
    }
  }
}

TEST(Router, AllTiersGiveTheSameBits) {
  std::mt19937 random(3);
  std::normal_distribution<float> draw(0.0F, 3.0F);
  for (const std::int32_t experts : {8, 60, 256}) {
    std::vector<float> scores(static_cast<std::size_t>(experts));
    for (float& score : scores) score = draw(random);
    for (const Scoring scoring : {Scoring::kSoftmax, Scoring::kSigmoid, Scoring::kSoftmaxOfChosen, Scoring::kSparseMixer}) {
      const RouterShape router = router_of(experts, 6, scoring);
      const auto first = choose(router, scores, {}, *available_tables().front());
      for (const auto* table : available_tables()) {
        const auto choices = choose(router, scores, {}, *table);
        for (std::size_t i = 0; i < choices.size(); ++i) {
          EXPECT_EQ(choices[i].expert, first[i].expert);
          EXPECT_EQ(choices[i].weight, first[i].weight) << table->name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace braid::model::test
