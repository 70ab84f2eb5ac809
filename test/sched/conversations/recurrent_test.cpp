// Chats with a model that has recurrent layers, or several groups of them: whether a turn is computed from its beginning, from a checkpoint of
// the state or from disk, alone or in a crowd that is preempted, its answer is the same bits, and a next turn computes its new tokens only.
#include "sched/conversations/chats.h"
#include "support/folder.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cstdint>
#include <functional>
#include <numeric>
#include <set>

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
  constexpr std::int32_t kChatBlocks = 9;
  if (groups.states.blocks() < kChatBlocks) {
    EXPECT_GT(chats.stats.preemptions, 0U) << groups.count() << " groups, a state of " << groups.states.blocks();
  }
}

// A step's tokens go to who is answered first, so a prompt gets another slice in each, and the last ones wait for blocks.
TEST_P(RecurrentChats, AreTheSameBitsHoweverTheyAreSliced) {
  Chats chats(GetParam());
  const auto cold = chats.hold(8, chats.options(false, Chats::kMostBlocks));
  const model::KvGroups& groups = chats.model().kv_groups();
  std::set<std::int32_t> slices;
  for (const std::int32_t tokens : {9, 17, 64}) {
    SchedulerOptions options = chats.options(true, tokens == 17 ? 24 * groups.count() + 6 * groups.states.blocks() : Chats::kMostBlocks);
    options.max_batch = 8;
    options.max_batch_tokens = tokens;
    expect_same(cold, chats.hold(8, options), "in slices");
    slices.merge(chats.slices);
  }
  EXPECT_GT(slices.size(), 15U);
}

TEST_P(RecurrentChats, ChoicesOfOnePromptForkItsState) {
  Chats chats(GetParam());
  const ChatTurn cold = chats.hold(1, chats.options(false, Chats::kMostBlocks)).front().back();
  for (const ChatTurn& choice : chats.ask_at_once(5, cold.prompt, chats.options(true, Chats::kMostBlocks))) {
    EXPECT_EQ(choice.tokens, cold.tokens);
    EXPECT_EQ(choice.logprobs, cold.logprobs);
  }
  EXPECT_GE(chats.stats.cache_hit_tokens, 4 * (cold.prompt.size() - 1)) << "the prompt was computed once";
}

TEST_P(RecurrentChats, AnotherAnswerToATurnComputesItsLastTokenOnly) {
  Chats chats(GetParam());
  chats.habits.asks_again = true;
  const auto cold = chats.hold(6, chats.options(false, Chats::kMostBlocks));
  const auto warm = chats.hold(6, chats.options(true, Chats::kMostBlocks));
  expect_same(cold, warm, "warm");
  for (const auto& turns : warm)
    for (const ChatTurn& turn : turns) EXPECT_EQ(turn.cached_again, static_cast<std::int32_t>(turn.prompt.size()) - 1);
}

TEST_P(RecurrentChats, AnEditedTurnComputesItsNewTokensOnly) {
  Chats chats(GetParam());
  chats.habits.edits = true;
  const auto cold = chats.hold(6, chats.options(false, Chats::kMostBlocks));
  const auto warm = chats.hold(6, chats.options(true, Chats::kMostBlocks));
  expect_same(cold, warm, "warm");
  for (const auto& turns : warm)
    for (std::size_t turn = 1; turn < turns.size(); ++turn)
      EXPECT_EQ(turns[turn].cached, static_cast<std::int32_t>(turns[turn - 1].prompt.size()) + 9) << "all but the last token of the answer";
}

// Nothing goes back in a state, so wrong guesses are verified beside it; wherever the answer ends, the next turn goes on from there or, where
// a step was still out, from before the answer.
TEST_P(RecurrentChats, AreTheSameBitsWhereAnswersAreGuessed) {
  Chats chats(GetParam());
  const auto cold = chats.hold(12, chats.options(false, Chats::kMostBlocks));
  chats.habits.guesses = &cold;
  const model::KvGroups& groups = chats.model().kv_groups();
  for (const std::int32_t blocks : {Chats::kMostBlocks, 24 * groups.count() + 6 * groups.states.blocks()}) {
    SchedulerOptions options = chats.options(true, blocks);
    options.draft_tokens = Chats::kMostDrafts;
    options.draft_always = true;
    const auto guessed = chats.hold(12, options);
    expect_same(cold, guessed, "guessed");
    const auto sum_of = [](const DraftStats::Counts& counts) {
      const auto& places = counts[static_cast<std::size_t>(DraftSource::kPrediction)];
      return std::accumulate(places.begin(), places.end(), std::uint64_t{0});
    };
    EXPECT_GT(sum_of(chats.stats.drafts.accepted), 0U);
    EXPECT_GT(sum_of(chats.stats.drafts.drafted), sum_of(chats.stats.drafts.accepted));
    for (const auto& turns : guessed)
      for (std::size_t turn = 1; turn < turns.size() && blocks == Chats::kMostBlocks; ++turn)
        EXPECT_GE(turns[turn].cached, static_cast<std::int32_t>(turns[turn - 1].prompt.size()) - 1);
  }
}

// The state has gone on with what nobody wants to hear, and cannot go back: the next turn begins before the answer, and is right.
TEST_P(RecurrentChats, GoOnWhereAStopStringHasEndedAnAnswerWithinAStep) {
  Chats chats(GetParam());
  for (const std::int32_t tokens : {1, 6, 9}) {
    chats.habits.lets_go_after = tokens;
    const auto cold = chats.hold(6, chats.options(false, Chats::kMostBlocks));
    const auto warm = chats.hold(6, chats.options(true, Chats::kMostBlocks));
    expect_same(cold, warm, "warm");
    std::uint64_t least = 0;
    for (const auto& turns : warm)
      for (std::size_t turn = 1; turn < turns.size(); ++turn) least += turns[turn - 1].prompt.size() - 1;
    EXPECT_GE(chats.stats.cache_hit_tokens, least);
  }
}

class ChatsOnDisk : public testing::TestWithParam<const char*> {
 protected:
  // A life of a server over the folder.
  std::vector<std::vector<ChatTurn>> hold(const SchedulerOptions& options, const std::string& folder) {
    boost::asio::io_context loop;
    store::StoreOptions wanted;
    wanted.directory = folder;
    wanted.limit_bytes = 1 << 30;
    wanted.identity = GetParam();
    wanted.payload_bytes = chats_.model().kv_groups().block_bytes();
    wanted.most_tokens = options.context_length;
    const auto store = store::BlockStore::open(wanted, store::make_io(), [&loop](std::function<void()> call) {
                         boost::asio::post(loop, std::move(call));
                       }).value();
    return chats_.hold(12, options, loop, store.get());
  }

  Chats chats_{GetParam()};
};

// All that a server has written, then a server that finds it; and one whose pool holds a few of the chats, so that they leave it and come
// back.
TEST_P(ChatsOnDisk, AreTheSameBitsColdAndFromDisk) {
  const braid::test::Folder folder;
  const auto cold = chats_.hold(12, chats_.options(false, Chats::kMostBlocks));
  SchedulerOptions disk = chats_.options(true, Chats::kMostBlocks);
  disk.disk_always = true;
  disk.write_through = true;
  expect_same(cold, hold(disk, folder.path()), "written");
  expect_same(cold, hold(disk, folder.path()), "from disk");
  EXPECT_GT(chats_.stats.cache_disk_hit_tokens, 12 * 16U);
  const braid::test::Folder other;
  disk.write_through = false;
  disk.max_batch = 2;
  const model::KvGroups& groups = chats_.model().kv_groups();
  disk.blocks = 60 * groups.count() + 8 * groups.states.blocks();
  for (int life = 0; life < 3; ++life) expect_same(cold, hold(disk, other.path()), "in a small pool");
  EXPECT_GT(chats_.stats.cache_disk_hit_tokens, 0U);
}

std::string suite_name(const testing::TestParamInfo<const char*>& suite) {
  std::string name = suite.param;
  std::erase(name, '.');
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, ChatsOnDisk,
                         testing::Values("lfm2", "granite4", "bamba", "qwen3-next", "qwen3.5", "falcon-h1", "mamba2", "nemotron-h",
                                         "gemma3", "qwen2-window", "llama-linear"),
                         suite_name);
INSTANTIATE_TEST_SUITE_P(Models, RecurrentChats,
                         testing::Values("lfm2", "granite4", "bamba", "qwen3-next", "qwen3.5", "falcon-h1", "mamba2", "nemotron-h"),
                         suite_name);

}  // namespace
}  // namespace braid::sched::test
