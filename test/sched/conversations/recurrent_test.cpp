// Chats with a model that has recurrent layers: whether a turn is computed from its beginning or from a checkpoint of the state, alone or
// in a crowd that is preempted, its answer is the same bits, and a next turn computes its new tokens only.
#include "sched/conversations/chats.h"

namespace braid::sched::test {
namespace {

class RecurrentChats : public testing::TestWithParam<const char*> {};

TEST_P(RecurrentChats, AreTheSameBitsColdAndWarmAndInACrowd) {
  Chats chats(GetParam());
  const auto cold = chats.hold(12, chats.options(false, Chats::kMostBlocks));
  const auto warm = chats.hold(12, chats.options(true, Chats::kMostBlocks));
  expect_same(cold, warm, "warm");
  for (const auto& turns : warm)
    for (std::size_t turn = 1; turn < turns.size(); ++turn)
      EXPECT_EQ(turns[turn].cached, static_cast<std::int32_t>(turns[turn - 1].prompt.size()) + 9) << "all but the last token of the answer";
  const model::KvGroups& groups = chats.model().kv_groups();
  expect_same(cold, chats.hold(12, chats.options(true, 24 * groups.count() + 6 * groups.states.blocks())), "in a crowd");
  // Where a state is larger than a chat's keys and values, those fit beside the states that were let in.
  constexpr std::int32_t kChatBlocks = 10;
  if (groups.states.blocks() < kChatBlocks) {
    EXPECT_GT(chats.stats.preemptions, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, RecurrentChats, testing::Values("lfm2", "granite4"),
                         [](const auto& suite) { return std::string(suite.param); });

}  // namespace
}  // namespace braid::sched::test
