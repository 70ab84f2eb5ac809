#include "model/sampling/philox.h"

#include <gtest/gtest.h>

namespace braid::model::test {
namespace {

// Salmon et al.'s known answers for Philox4x32-10 (Random123's kat_vectors).
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}), (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Philox, DrawsDependOnSeedChoiceAndPosition) {
  const double draw = uniform_draw(1, 0, 0);
  EXPECT_NE(draw, uniform_draw(2, 0, 0));
  EXPECT_NE(draw, uniform_draw(1, 1, 0));
  EXPECT_NE(draw, uniform_draw(1, 0, 1));
  EXPECT_EQ(draw, uniform_draw(1, 0, 0));
}

}  // namespace
}  // namespace braid::model::test
