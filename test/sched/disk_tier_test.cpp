// Blocks that go to disk and come back, each to whom it belongs. The fake's answers depend on what the blocks hold, so a wrong, stale or
// half-loaded block changes an answer. Blocks are of 4 tokens unless a test says otherwise.
#include "sched/disk_tier.h"

#include "cache/block_pool.h"
#include "cache/prefix_index.h"
#include "sched/disk_rig.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace braid::sched::test {
namespace {

TEST(DiskTier, EvictedBlocksComeBackFromDisk) {
  const Folder folder;
  Server server(folder.path(), tier_options(20));
  const auto prompt = Rig::prompt_of(41, 1);
  EXPECT_EQ(server.cached(prompt), 0);
  EXPECT_EQ(server.cached(Rig::prompt_of(70, 2)), 0);
  server.settle();
  EXPECT_GT(server.store->stats().writes, 0U);
  const EngineStats before = server.rig->scheduler->stats();
  EXPECT_EQ(server.cached(prompt), 40);
  EXPECT_EQ(server.rig->scheduler->stats().prompt_tokens, before.prompt_tokens + 1) << "only the last token";
  server.rig->run_to_end();
}

// Steps that save tell nothing of what decode rows cost, and here all do from some time on: prefill must not wait for one that tells it.
TEST(DiskTier, PrefillGoesOnWhileEveryStepSaves) {
  for (std::int32_t cached = 200; cached < 240; cached += 2) {
    const Folder folder;
    SchedulerOptions options = tier_options(400);
    options.block_tokens = 1;  // each row of a step takes a block
    options.max_batch = 4;
    options.max_batch_tokens = 7;
    options.stream_capacity = 128;
    Server server(folder.path(), options);
    server.cached(Rig::prompt_of(cached, 1), 1);
    Client& first = server.rig->start(Rig::prompt_of(2, 2), 100);
    Client& second = server.rig->start(Rig::prompt_of(2, 3), 100);
    ASSERT_TRUE(server.rig->run_until([&] { return !second.tokens.empty(); }));
    const std::size_t before = server.rig->model.steps().size();
    server.rig->complete(Rig::prompt_of(130, 4), 1);
    ASSERT_TRUE(server.rig->run_until([&] { return first.finished() && second.finished(); }));
    const std::vector<StepRecord> steps = server.rig->model.steps();
    std::optional<std::size_t> last;
    std::size_t longest = 0;
    for (std::size_t i = before; i < steps.size(); ++i) {
      if (steps[i].prefill_tokens == 0) continue;
      if (last) longest = std::max(longest, i - *last);
      last = i;
    }
    EXPECT_LE(longest, 4U) << "with " << cached << " cached blocks";
    server.rig->run_to_end();
  }
}

TEST(DiskTier, WriteThroughSurvivesARestart) {
  const Folder folder;
  const auto prompt = Rig::prompt_of(100, 1);
  {
    Server server(folder.path(), tier_options(100, true));
    EXPECT_EQ(server.cached(prompt, 30), 0);
    server.rig->run_to_end();
    EXPECT_EQ(server.store->stats().writes, 32U) << "129 positions";
  }
  Server server(folder.path(), tier_options(100, true));
  EXPECT_EQ(server.cached(prompt, 30), 96);
  EXPECT_EQ(server.cached(prompt, 30), 99) << "from RAM, of the last block a copy";
  EXPECT_EQ(server.store->stats().reads, 24U);
  EXPECT_EQ(server.store->stats().writes, 0U) << "what is there is not written again";
  server.rig->run_to_end();
}

// What found none when it was full is written when there are some.
TEST(DiskTier, WriteThroughWaitsForBuffers) {
  const Folder folder;
  Server server(folder.path(), tier_options(100, true));
  std::vector<store::BlockStore::PendingRecord> hoarded;
  while (server.store->free_buffers() > 0) hoarded.push_back(*server.store->begin_write({1, 2}, {}));
  Client& client = server.rig->submit(Rig::prompt_of(100, 1), 30);
  ASSERT_TRUE(server.rig->run_until([&] { return client.take(), !client.tokens.empty(); }));
  ASSERT_FALSE(client.finished());
  hoarded.clear();
  EXPECT_TRUE(server.rig->run_until([&] { return client.take(), client.finished(); }));
  server.rig->run_to_end();
  EXPECT_EQ(server.store->stats().writes, 32U) << "129 positions";
}

// Whose blocks neither the pool nor the window holds at once: they are loaded as a prefill would compute them, and let go of.
TEST(DiskTier, PromptsLongerThanTheirWindowAndThePoolComeBack) {
  for (const bool write_through : {true, false}) {
    const Folder folder;
    const auto prompt = Rig::prompt_of(301, 1);
    SchedulerOptions options = tier_options(100, write_through);
    options.max_batch = 2;
    options.max_batch_tokens = 8;
    options.groups = {{16, 4}};
    {
      Server server(folder.path(), options);
      server.cached(prompt, 30);
      // Others evict what the window left first, and with it all that lies below, then the first block, which it kept.
      for (int other = 2; !write_through && other < 5; ++other) server.cached(Rig::prompt_of(390, other));
      server.rig->run_to_end();
    }
    options.blocks = 9;
    Server server(folder.path(), options);
    const Client& restored = server.rig->complete(prompt, 30);
    EXPECT_EQ(restored.finish->usage.cached_tokens, 300) << write_through;
    server.rig->expect_right(restored);
    server.rig->run_to_end();
  }
}

// The pool evicts its beginning, and the tree with it, while it is still being computed.
TEST(DiskTier, WriteThroughTakesAllOfASequenceLongerThanThePool) {
  const Folder folder;
  const auto prompt = Rig::prompt_of(301, 1);
  SchedulerOptions options = tier_options(9, true);
  options.max_batch = 2;
  options.max_batch_tokens = 8;
  options.groups = {{16, 4}};
  for (const std::int32_t cached : {0, 300}) {
    Server server(folder.path(), options);
    EXPECT_EQ(server.cached(prompt, 60), cached);
    server.rig->run_to_end();
    EXPECT_EQ(server.store->stats().records, 90U) << "360 positions";
  }
  Server server(folder.path(), options);
  const Client& first = server.rig->complete(prompt, 60);
  auto longer = prompt;
  longer.insert(longer.end(), first.tokens.begin(), first.tokens.end());
  EXPECT_EQ(server.cached(longer), 360);
  server.rig->run_to_end();
}

TEST(DiskTier, SeveralLongPromptsComeBackThroughOneSmallPool) {
  const Folder folder;
  SchedulerOptions options = tier_options(400, true);
  options.max_batch = 4;
  options.max_batch_tokens = 8;
  options.groups = {{16, 4}};
  for (int life = 0; life < 2; ++life) {
    options.blocks = life == 0 ? 400 : 9;
    Server server(folder.path(), options);
    for (int i = 0; i < 5; ++i) server.rig->start(200 + 13 * i, 20);
    server.rig->run_to_end();
    for (const auto& client : server.rig->clients) server.rig->expect_right(*client);
    if (life == 1) {
      EXPECT_GT(server.rig->scheduler->stats().cache_disk_hit_tokens, 500U);
    }
  }
}

SchedulerOptions grouped_options(std::int32_t blocks, bool write_through) {
  SchedulerOptions options = tier_options(blocks, write_through);
  options.max_batch_tokens = 16;
  options.groups = {{}, {16, 4}, {32, 0}};
  return options;
}

// What each group has is a record of its own.
TEST(DiskTier, AllGroupsOfABlockComeBack) {
  for (const bool write_through : {true, false}) {
    const Folder folder;
    const auto prompt = Rig::prompt_of(201, 1);
    {
      Server server(folder.path(), grouped_options(200, write_through));
      server.cached(prompt, 20);
      for (int other = 2; !write_through && other < 5; ++other) server.cached(Rig::prompt_of(300, other));
      server.rig->run_to_end();
    }
    Server server(folder.path(), grouped_options(100, write_through));
    const Client& restored = server.rig->complete(prompt, 20);
    EXPECT_EQ(restored.finish->usage.cached_tokens, 200) << write_through;
    EXPECT_EQ(server.store->stats().reads, 150U) << "50 blocks of three groups";
    server.rig->run_to_end();
  }
}

// A windowed group gives back what its window has passed also while its blocks come from disk: three groups would need 153 blocks.
TEST(DiskTier, WindowsOfGroupsMoveWhileTheirBlocksAreLoaded) {
  const Folder folder;
  const auto prompt = Rig::prompt_of(201, 1);
  leave_on_disk(prompt, folder.path(), grouped_options(200, true));
  Server server(folder.path(), grouped_options(80, true));
  EXPECT_EQ(server.cached(prompt), 200);
  server.rig->run_to_end();
}

SchedulerOptions recurrent_options(std::int32_t blocks, bool write_through) {
  SchedulerOptions options = tier_options(blocks, write_through);
  options.state_blocks = 3;
  options.state_interval = 16;
  return options;
}

// Before the prompt's last token, within a block.
TEST(DiskTier, AStateComesBackWithTheBlocksBeforeIt) {
  for (const bool write_through : {true, false}) {
    const Folder folder;
    const auto prompt = Rig::prompt_of(90, 1);
    {
      Server server(folder.path(), recurrent_options(write_through ? 200 : 70, write_through));
      server.cached(prompt, 20);
      for (int other = 2; !write_through && other < 6; ++other) server.cached(Rig::prompt_of(150, other));
      server.rig->run_to_end();
    }
    Server server(folder.path(), recurrent_options(100, write_through));
    EXPECT_EQ(server.cached(prompt, 20), 89) << write_through;
    EXPECT_EQ(server.rig->scheduler->stats().cache_disk_hit_tokens, 89U);
    EXPECT_EQ(server.cached(prompt, 20), 89);
    server.rig->run_to_end();
  }
}

// Wherever in a block the answer has ended, and whether the model has attention or not.
TEST(DiskTier, AfterARestartATurnComputesWhatFollowsTheLastCheckpoint) {
  for (std::int32_t length = 50; length < 58; ++length) {
    const Folder folder;
    SchedulerOptions options = recurrent_options(200, true);
    options.state_interval = 0;
    if (length % 2 == 0) options.groups.emplace_back();
    auto chat = Rig::prompt_of(length, 1);
    for (std::int32_t turn = 0; turn < 3; ++turn) {
      Server server(folder.path(), options);
      const auto known = static_cast<std::int32_t>(chat.size());
      if (turn > 0) {
        const auto next = Rig::prompt_of(5 + turn, 100 + turn);
        chat.insert(chat.end(), next.begin(), next.end());
      }
      const Client& client = server.rig->complete(chat, 9);
      EXPECT_EQ(client.finish->usage.cached_tokens, turn > 0 ? known - 1 : 0) << length;
      EXPECT_EQ(server.rig->scheduler->stats().cache_disk_hit_tokens, turn > 0 ? static_cast<std::uint64_t>(known - 1) : 0U);
      chat.insert(chat.end(), client.tokens.begin(), client.tokens.end());
      server.rig->run_to_end();
    }
  }
}

// What RAM has of it may be more than the disk's, also within the same block.
TEST(DiskTier, AStateInRamThatIsFurtherOnIsGoneOnWith) {
  const Folder folder;
  SchedulerOptions options = recurrent_options(200, true);
  options.state_interval = 0;
  const auto prompt = Rig::prompt_of(60, 1);
  const auto first = [&](std::int32_t count) { return std::vector<TokenId>(prompt.begin(), prompt.begin() + count); };
  leave_on_disk(first(54), folder.path(), options);  // a state behind token 53
  options.write_through = false;
  Server server(folder.path(), options);
  EXPECT_EQ(server.cached(first(55), 1), 53);
  EXPECT_EQ(server.rig->scheduler->stats().cache_disk_hit_tokens, 53U);
  EXPECT_EQ(server.cached(prompt, 1), 55) << "all of the last prompt";
  EXPECT_EQ(server.rig->scheduler->stats().cache_disk_hit_tokens, 53U);
  server.rig->run_to_end();
}

// States go to disk for themselves where they may take no more memory; the blocks before them stay in RAM and are on no disk.
TEST(DiskTier, AStateComesBackBehindBlocksThatHaveStayedInRam) {
  for (const std::int32_t length : {89, 90, 93}) {
    const Folder folder;
    const auto mood = std::make_shared<MoodyIo::Mood>();
    SchedulerOptions options = recurrent_options(400, false);
    options.most_state_blocks = 6;
    options.state_interval = 0;
    const auto prompt = Rig::prompt_of(length, 1);
    Server server(folder.path(), options, mood);
    server.cached(prompt, 1);
    for (int other = 2; other < 5; ++other) server.cached(Rig::prompt_of(20, other), 1);
    server.settle();
    EXPECT_EQ(server.rig->scheduler->stats().cache_disk_hit_tokens, 0U);
    EXPECT_EQ(server.cached(prompt, 20), length - 1);
    EXPECT_EQ(server.rig->scheduler->stats().cache_disk_hit_tokens, static_cast<std::uint64_t>(length - 1));
    server.rig->run_to_end();
  }
}

// The blocks in RAM are others', too: without its state it writes to none of them.
TEST(DiskTier, AStateThatDoesNotComeIsComputedBesideTheBlocksInRam) {
  for (int one_in = 1; one_in < 12; ++one_in) {
    const Folder folder;
    const auto mood = std::make_shared<MoodyIo::Mood>();
    SchedulerOptions options = recurrent_options(one_in % 2 == 0 ? 400 : 60, false);
    options.most_state_blocks = 6;
    options.state_interval = 0;
    const auto prompt = Rig::prompt_of(90, 1);
    Server server(folder.path(), options, mood);
    server.cached(prompt, 1);
    for (int other = 2; other < 5; ++other) server.cached(Rig::prompt_of(20, other), 1);
    server.settle();
    mood->fail_one_in = one_in;
    const std::int32_t cached = server.cached(prompt, 20);
    EXPECT_TRUE(cached == 0 || cached == 89) << cached;
    server.cached(prompt, 20);
    server.rig->run_to_end();
  }
}

// Behind blocks that somebody else holds it needs few of its own; where computing is faster than this disk it needs all, and waits for them: it is
// not let in and put back in every step.
TEST(DiskTier, WhoseStateIsNotReadWaitsForBlocksOfItsOwn) {
  const Folder folder;
  const auto mood = std::make_shared<MoodyIo::Mood>();
  SchedulerOptions options = recurrent_options(52, false);
  options.most_state_blocks = 6;
  options.state_interval = 0;
  options.disk_always = false;
  options.restore_patience = std::chrono::hours(1);
  const auto with_end = [](std::int32_t key) {
    auto prompt = Rig::prompt_of(90, 1);
    const auto end = Rig::prompt_of(8, key);
    prompt.insert(prompt.end(), end.begin(), end.end());
    return prompt;
  };
  Server server(folder.path(), options, mood);
  Rig& rig = *server.rig;
  server.cached(Rig::prompt_of(90, 1), 1);
  for (int other = 2; other < 5; ++other) server.cached(Rig::prompt_of(8, other), 1);
  server.settle();
  mood->read_milliseconds = 20;
  Client& first = rig.submit(with_end(3), 80);
  ASSERT_TRUE(rig.run_until([&] { return first.take(), !first.tokens.empty(); }));
  ASSERT_EQ(rig.scheduler->stats().cache_disk_hit_tokens, 90U);
  rig.model.hold();
  server.settle();
  const std::uint64_t reads = server.store->stats().reads;
  Client& second = rig.submit(with_end(4), 5);
  for (int steps = 0; steps < 10; ++steps) {
    const std::uint64_t before = rig.scheduler->stats().steps;
    rig.model.allow();
    ASSERT_TRUE(rig.run_until([&] { return first.take(), rig.scheduler->stats().steps > before; }));
    server.settle();
    ASSERT_EQ(rig.phase(second), SequencePhase::kWaiting);
  }
  EXPECT_LE(server.store->stats().reads, reads + 4) << "the beginning of a block and a state, once";
  ASSERT_FALSE(first.finished());
  rig.model.release();
  ASSERT_TRUE(rig.run_until([&] { return rig.take_all(); }));
  rig.expect_right(first);
  rig.expect_right(second);
  rig.run_to_end();
}

// Blocks alone are of no use: what was loaded of them does not count, and the prompt is computed.
TEST(DiskTier, WithoutItsStateAPromptIsComputed) {
  const Folder folder;
  const auto mood = std::make_shared<MoodyIo::Mood>();
  const auto prompt = Rig::prompt_of(90, 1);
  leave_on_disk(prompt, folder.path(), recurrent_options(200, true));
  for (int one_in = 1; one_in < 40; one_in += 3) {
    Server server(folder.path(), recurrent_options(100, true), mood);
    mood->fail_one_in = one_in;
    const std::int32_t cached = server.cached(prompt, 20);
    EXPECT_TRUE(cached == 0 || cached == 89) << cached;
    mood->fail_one_in = 0;
    server.rig->run_to_end();
  }
}

// A tier over one published block, without a scheduler.
struct BareTier {
  explicit BareTier(
      const SchedulerOptions& options, std::size_t buffers, store::BlockStore::Post post = [](const auto&) {})
      : index(pool, 4) {
    store::StoreOptions wanted;
    wanted.directory = folder.path();
    wanted.limit_bytes = 4 << 20;
    wanted.payload_bytes = 16;
    wanted.most_tokens = 4;
    wanted.buffer_memory = 0;
    wanted.least_buffers = buffers;
    wanted.clock = [this] { return now; };
    store = *store::BlockStore::open(wanted, store::make_thread_io(1), std::move(post));
    tier.emplace(*store, index, options, [] {});
    node = *pool.allocate();
    index.insert(cache::PrefixIndex::kNoParent, {{}, tokens, {}}, 0, node);
    std::vector<cache::BlockId> state;
    for (std::int32_t part = 0; part < options.state_blocks; ++part) state.push_back(*pool.allocate());
    if (!state.empty()) index.put_state(node, 4, state);
  }
  std::size_t saved() {
    step::StepPlan plan;
    tier->complete(plan);
    return plan.saves.size();
  }

  std::uint64_t now = 1'000'000;
  Folder folder;
  cache::BlockPool pool{20, 2};
  cache::PrefixIndex index;
  std::vector<std::int32_t> tokens{1, 2, 3, 4};
  std::unique_ptr<store::BlockStore> store;
  std::optional<DiskTier> tier;
  cache::BlockId node = 0;
};

// A part of it would be of no use.
TEST(DiskTier, AStateIsSavedAsAWhole) {
  for (const std::size_t buffers : {4U, 5U, 6U}) {
    BareTier bare(recurrent_options(20, true), buffers);
    bare.tier->save(bare.node, 0);  // takes one
    bare.tier->save_state(bare.node, 4);
    EXPECT_EQ(bare.saved(), 4U) << buffers;
    SchedulerOptions larger = recurrent_options(20, true);
    larger.state_blocks = 5;
    BareTier other(larger, buffers);
    other.tier->save(other.node, 0);
    other.tier->save_state(other.node, 4);
    EXPECT_EQ(other.saved(), buffers == 6 ? 6U : 1U) << buffers;
  }
}

// It wants a state of three parts behind a block. What has come when the rest turns out to be gone would lie where another state is copied to.
TEST(DiskTier, PartsOfAStateWhoseRestIsLostAreNotLoaded) {
  boost::asio::io_context loop;
  const auto work = boost::asio::make_work_guard(loop);
  const SchedulerOptions options = recurrent_options(20, true);
  BareTier bare(options, 4, [&loop](std::function<void()> call) { boost::asio::post(loop, std::move(call)); });
  bare.tier->save(bare.node, 0);
  bare.tier->save_state(bare.node, 4);
  step::StepPlan saving;
  bare.tier->complete(saving);
  bare.tier->on_step_back(saving, false);
  while (!bare.store->idle()) loop.run_one();
  std::vector<store::BlockStore::PendingRecord> hoarded;
  for (std::uint64_t key = 1; bare.store->free_buffers() > 2; ++key) hoarded.push_back(*bare.store->begin_write({key, key}, {}));
  const std::vector<std::int32_t> tokens{1, 2, 3, 4, 5};
  const auto restoration = bare.tier->restore(nullptr, {{}, tokens, {}}, 0);
  ASSERT_NE(restoration, nullptr);
  ASSERT_EQ(restoration->pieces.size(), 2U) << "the block, and the state's first part";
  while (!bare.store->idle()) loop.run_one();
  hoarded.pop_back();
  bare.now += 30ULL * 24 * 3600;
  const Groups groups(options.groups, 4, 3);
  Holdings blocks(bare.pool, groups);
  ASSERT_TRUE(blocks.start(1));
  step::StepPlan plan;
  bare.tier->load(restoration, blocks, plan);
  EXPECT_TRUE(restoration->has_ended());
  EXPECT_EQ(restoration->next, 2) << "as far as it had come";
  EXPECT_TRUE(plan.loads.empty());
}

// Blocks of a model without attention only count its positions.
TEST(DiskTier, BlocksThatHoldNothingHaveNoRecords) {
  SchedulerOptions options = recurrent_options(20, true);
  options.block_use = {0.0};
  BareTier bare(options, 8);
  bare.tier->save(bare.node, 0);
  EXPECT_EQ(bare.saved(), 0U);
  bare.tier->save_state(bare.node, 4);
  EXPECT_EQ(bare.saved(), 3U);
}

// And within a block with the block's beginning, or not at all.
TEST(DiskTier, AStateWithinABlockIsSavedWithWhatIsBeforeIt) {
  for (const std::size_t buffers : {4U, 5U}) {
    BareTier bare(recurrent_options(20, true), buffers);
    const std::vector<cache::BlockId> state = {*bare.pool.allocate(), *bare.pool.allocate(), *bare.pool.allocate()};
    ASSERT_TRUE(bare.index.put_state(bare.node, 2, state));
    if (buffers == 5) bare.tier->save(bare.node, 0);  // takes one
    bare.tier->save_state(bare.node, 2);
    EXPECT_EQ(bare.saved(), buffers == 5 ? 5U : 4U);
    bare.tier->save(bare.node, 0);  // all but one are taken
    bare.tier->save_state(bare.node, 2);
    EXPECT_EQ(bare.saved(), 0U) << "no buffers";
  }
}

TEST(DiskTier, SaltsShareNothing) {
  const Folder folder;
  const auto prompt = Rig::prompt_of(50, 1);
  {
    Server server(folder.path(), tier_options(100, true));
    EXPECT_EQ(server.cached(prompt, 3, "one"), 0);
    server.rig->run_to_end();
  }
  Server server(folder.path(), tier_options(100, true));
  EXPECT_EQ(server.cached(prompt, 3, "two"), 0);
  EXPECT_EQ(server.cached(prompt, 3), 0);
  EXPECT_EQ(server.cached(prompt, 3, "one"), 48);
  server.rig->run_to_end();
}

TEST(DiskTier, ImagesAndAdaptersComeBackAsThemselvesOnly) {
  const Folder folder;
  const auto prompt = Rig::prompt_of(50, 1);
  const Tint tint{.adapter = 1, .image = 1, .first = 17, .count = 20};
  const auto cached = [&](Server& server, const Tint& wanted) {
    return server.rig->complete(server.rig->submit(Rig::tinted(wanted, prompt, 3))).finish->usage.cached_tokens;
  };
  {
    Server server(folder.path(), tier_options(100, true));
    EXPECT_EQ(cached(server, tint), 0);
    server.rig->run_to_end();
  }
  Server server(folder.path(), tier_options(100));
  EXPECT_EQ(cached(server, {.image = 1, .first = 17, .count = 20}), 0);
  EXPECT_EQ(cached(server, {.adapter = 1, .image = 2, .first = 17, .count = 20}), 16);
  EXPECT_EQ(server.rig->scheduler->stats().cache_disk_hit_tokens, 16U);
  EXPECT_EQ(cached(server, tint), 48);
  EXPECT_EQ(server.rig->scheduler->stats().cache_disk_hit_tokens, 48U);
  server.rig->run_to_end();
}

TEST(DiskTier, AnotherIdentitySharesNothing) {
  const Folder folder;
  SchedulerOptions options = tier_options(100, true);
  const auto prompt = Rig::prompt_of(50, 1);
  leave_on_disk(prompt, folder.path(), options);
  options.kv_identity = "another adapter";
  Server server(folder.path(), options);
  EXPECT_EQ(server.cached(prompt), 0);
  server.rig->run_to_end();
}

}  // namespace
}  // namespace braid::sched::test
