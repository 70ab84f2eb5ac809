// Blocks that go to disk and come back. The fake's answers depend on what the blocks hold, so a wrong, stale or half-loaded block
// changes an answer.
#include "sched/disk_rig.h"
#include "sched/restore_choice.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <random>
#include <string>

namespace braid::sched::test {
namespace {

// Blocks of 4 tokens throughout.
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

// Whose blocks neither the pool nor the window holds at once: they are loaded as a prefill would compute them, and let go of.
TEST(DiskTier, PromptsLongerThanTheirWindowAndThePoolComeBack) {
  for (const bool write_through : {true, false}) {
    const Folder folder;
    const auto prompt = Rig::prompt_of(301, 1);
    SchedulerOptions options = tier_options(100, write_through);
    options.max_batch = 2;
    options.max_batch_tokens = 8;
    options.visibility = {16, 4};
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
  options.visibility = {16, 4};
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
  options.visibility = {16, 4};
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
  {
    Server server(folder.path(), options);
    server.cached(prompt);
    server.rig->run_to_end();
  }
  options.kv_identity = "another adapter";
  Server server(folder.path(), options);
  EXPECT_EQ(server.cached(prompt), 0);
  server.rig->run_to_end();
}

// More blocks than the host has buffers for.
TEST(DiskTier, RestoresLongPrefixesInTurns) {
  const Folder folder;
  const auto prompt = Rig::prompt_of(500, 1);
  SchedulerOptions options = tier_options(300, true);
  {
    Server server(folder.path(), options);
    server.cached(prompt, 3);
    server.rig->run_to_end();
    EXPECT_EQ(server.store->stats().writes + server.store->stats().writes_dropped, 125U);
    if (server.store->stats().writes_dropped > 0) GTEST_FAIL() << "the test wants enough buffers for saving";
  }
  Server server(folder.path(), options);
  std::vector<store::BlockStore::Draft> hoarded;
  while (server.store->free_buffers() > 8) hoarded.push_back(*server.store->begin_write({1, 2}, {}));
  EXPECT_EQ(server.cached(prompt, 3), 496);
  server.rig->run_to_end();
}

// What the disk gives lies there while a step takes longer than patience with the disk lasts.
TEST(DiskTier, LongStepsDoNotEndARestoration) {
  const Folder folder;
  const auto prompt = Rig::prompt_of(100, 1);
  {
    Server server(folder.path(), tier_options(100, true));
    server.cached(prompt);
    server.rig->run_to_end();
  }
  Server server(folder.path(), tier_options(100, true));
  std::vector<store::BlockStore::Draft> hoarded;
  while (server.store->free_buffers() > 4) hoarded.push_back(*server.store->begin_write({1, 2}, {}));
  server.rig->model.hold();
  Client& client = server.rig->submit(prompt, 3);
  bool is_over = false;
  boost::asio::steady_timer timer(server.rig->loop, std::chrono::seconds(4));
  timer.async_wait([&](const auto&) { is_over = true; });
  ASSERT_TRUE(server.rig->run_until([&] { return is_over; }));
  server.rig->model.release();
  EXPECT_EQ(server.rig->complete(client).finish->usage.cached_tokens, 96);
  server.rig->run_to_end();
}

TEST(DiskTier, OthersPassWhileReadsAreOut) {
  const Folder folder;
  const auto prompt = Rig::prompt_of(50, 1);
  {
    Server server(folder.path(), tier_options(100, true));
    server.cached(prompt);
    server.rig->run_to_end();
  }
  const auto mood = std::make_shared<MoodyIo::Mood>();
  mood->hold_reads = true;
  Server server(folder.path(), tier_options(100, true), mood);
  Client& stuck = server.rig->submit(prompt, 5);
  EXPECT_EQ(server.cached(Rig::prompt_of(60, 2)), 0);
  EXPECT_EQ(server.rig->phase(stuck), SequencePhase::kRestoring);
  ASSERT_TRUE(server.rig->run_until([&] { return stuck.take(), stuck.finished(); })) << "it computes in the end";
  server.rig->expect_right(stuck);
  EXPECT_EQ(stuck.finish->usage.cached_tokens, 0);
  server.rig->expect_nothing_held();
}

TEST(DiskTier, EqualPromptsAreReadOnce) {
  const Folder folder;
  const auto prompt = Rig::prompt_of(50, 1);
  {
    Server server(folder.path(), tier_options(100, true));
    server.cached(prompt);
    server.rig->run_to_end();
  }
  const auto mood = std::make_shared<MoodyIo::Mood>();
  mood->hold_reads = true;
  Server server(folder.path(), tier_options(100, true), mood);
  Client& first = server.rig->submit(prompt, 5);
  const std::size_t left = server.store->free_buffers();
  EXPECT_LT(left, server.buffers);
  const Client& second = server.rig->submit(prompt, 5);
  EXPECT_EQ(server.store->free_buffers(), left);
  server.rig->submit(prompt, 5, {}, "another's");
  EXPECT_EQ(server.store->free_buffers(), left) << "the disk has nothing of it";
  first.ticket.reset();
  ASSERT_TRUE(server.rig->run_until([&] { return server.rig->phase(second) == SequencePhase::kRestoring; })) << "without the first, by itself";
}

TEST(DiskTier, OthersGoOnAfterAFailedStepWhileReadsAreOut) {
  const Folder folder;
  const auto prompt = Rig::prompt_of(50, 1);
  {
    Server server(folder.path(), tier_options(100, true));
    server.cached(prompt);
    server.rig->run_to_end();
  }
  const auto mood = std::make_shared<MoodyIo::Mood>();
  mood->hold_reads = true;
  Server server(folder.path(), tier_options(100, true), mood);
  const Client& one = server.rig->start(Rig::prompt_of(5, 7), 60);
  const Client& other = server.rig->start(Rig::prompt_of(6, 8), 60);
  ASSERT_TRUE(server.rig->run_until([&] { return other.tokens.size() >= 5; }));
  Client& stuck = server.rig->submit(prompt, 5);
  ASSERT_TRUE(server.rig->run_until([&] { return server.rig->phase(stuck) == SequencePhase::kRestoring; }));
  server.rig->model.fail_next("no luck");
  ASSERT_TRUE(server.rig->run_until([&] { return one.finished() && other.finished(); }));
  EXPECT_EQ(server.rig->phase(stuck), SequencePhase::kRestoring) << "who is held does not wait for it";
  server.cached(Rig::prompt_of(60, 2));
  EXPECT_EQ(server.rig->phase(stuck), SequencePhase::kRestoring) << "nor does who comes";
  EXPECT_EQ(server.rig->scheduler->stats().retried_steps, 1U);
  stuck.ticket.reset();
  server.rig->expect_nothing_held();
}

TEST(DiskTier, CancellingWhileReadsAreOutHoldsNothing) {
  const Folder folder;
  const auto prompt = Rig::prompt_of(50, 1);
  {
    Server server(folder.path(), tier_options(100, true));
    server.cached(prompt);
    server.rig->run_to_end();
  }
  Server server(folder.path(), tier_options(100, true));
  for (int turns = 0; turns < 12; ++turns) {
    Client& client = server.rig->submit(prompt, 5);
    for (int i = 0; i < turns; ++i) server.rig->loop.run_one_for(std::chrono::milliseconds(20));
    client.ticket.reset();
  }
  server.rig->run_to_end();
  EXPECT_EQ(server.store->free_buffers(), server.buffers);
}

TEST(DiskTier, AFailedStepWithLoadsIsComputedAgain) {
  const Folder folder;
  const auto prompt = Rig::prompt_of(50, 1);
  {
    Server server(folder.path(), tier_options(100, true));
    server.cached(prompt);
    server.rig->run_to_end();
  }
  const auto mood = std::make_shared<MoodyIo::Mood>();
  mood->read_milliseconds = 50;  // two at a time: the third block comes after a step that loads the others, and has no row yet
  Server server(folder.path(), tier_options(100, true), mood);
  server.rig->model.fail_next("no luck");
  Client& failed = server.rig->submit(prompt, 5);
  ASSERT_TRUE(server.rig->run_until([&] { return failed.take(), failed.finished(); }));
  EXPECT_NE(failed.finish->reason, FinishReason::kError) << "it computes what it was to load";
  EXPECT_EQ(failed.tokens, server.rig->model.expected(prompt, failed.stop));
  EXPECT_EQ(server.cached(prompt), 49) << "and what it computed is found";
  server.rig->run_to_end();
}

TEST(DiskTier, WhatIsComputedFasterIsNotRead) {
  const Folder folder;
  const auto prompt = Rig::prompt_of(50, 1);
  {
    Server server(folder.path(), tier_options(100, true));
    server.cached(prompt);
    server.rig->run_to_end();
  }
  SchedulerOptions options = tier_options(20, true);  // so few blocks that each prompt evicts the other
  options.disk_always = false;
  const auto mood = std::make_shared<MoodyIo::Mood>();
  mood->read_milliseconds = 20;
  Server server(folder.path(), options, mood);
  EXPECT_EQ(server.cached(prompt), 48) << "nothing is measured yet";
  server.cached(Rig::prompt_of(70, 2));
  EXPECT_LT(server.cached(prompt), 48) << "the fake computes far faster than this disk reads";
  server.rig->run_to_end();
}

// Every other request has nothing on disk: those do not use up the turns at which it is tried again.
TEST(DiskTier, ASlowDiskIsTriedAgainWhoeverComesBetween) {
  const Folder folder;
  const auto prompt = Rig::prompt_of(50, 1);
  {
    Server server(folder.path(), tier_options(100, true));
    server.cached(prompt);
    server.rig->run_to_end();
  }
  for (const int before : {0, 1}) {
    SchedulerOptions options = tier_options(20, true);
    options.disk_always = false;
    const auto mood = std::make_shared<MoodyIo::Mood>();
    mood->read_milliseconds = 5;
    Server server(folder.path(), options, mood);
    server.cached(prompt);
    std::int32_t key = 100 * (before + 1);
    const auto others = [&](int count) {
      for (int i = 0; i < count; ++i) server.cached(Rig::prompt_of(70, ++key));
    };
    others(1 + before);
    const auto hits = [&] { return server.rig->scheduler->stats().cache_disk_hit_tokens; };
    const std::uint64_t first = hits();
    for (std::uint32_t i = 0; i < RestoreChoice::kRetry + 1 && hits() == first; ++i) {
      server.settle();  // buffers are free
      server.cached(prompt);
      others(1);
    }
    EXPECT_GT(hits(), first);
    server.rig->run_to_end();
  }
}

TEST(RestoreChoice, TakesTheFasterOneAndTriesTheDiskAgain) {
  RestoreChoice choice;
  EXPECT_TRUE(choice.takes_disk(1000.0));
  choice.observe(100, 0.05);
  EXPECT_TRUE(choice.takes_disk(0.0));
  EXPECT_TRUE(choice.takes_disk(1999.0));
  std::uint32_t taken = 0;
  for (std::uint32_t i = 0; i < 2 * RestoreChoice::kRetry; ++i) taken += choice.takes_disk(2001.0) ? 1 : 0;
  EXPECT_EQ(taken, 2U);
  for (int i = 0; i < 40; ++i) choice.observe(100, 0.01);
  EXPECT_TRUE(choice.takes_disk(2001.0));
}

TEST(DiskTier, VerifyingComputesAndComparesEveryHit) {
  const Folder folder;
  SchedulerOptions options = tier_options(100, true);
  const auto prompt = Rig::prompt_of(50, 1);
  {
    Server server(folder.path(), options);
    server.cached(prompt);
    server.rig->run_to_end();
  }
  options.kv_verify = true;
  Server server(folder.path(), options);
  EXPECT_EQ(server.cached(prompt), 0);
  EXPECT_EQ(server.cached(prompt), 0);
  server.rig->run_to_end();
  EXPECT_EQ(server.store->stats().reads, 13U) << "52 positions";
  EXPECT_EQ(server.rig->scheduler->stats().cache_verified_blocks, 13U + 13U) << "on disk, then in RAM";
  EXPECT_EQ(server.rig->scheduler->stats().prompt_tokens, 100U);
}

// What no check on the way can see: a block that was wrong when it was saved.
TEST(DiskTierDeathTest, VerifyingAbortsAtADifference) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  // The process that dies runs this test from its start and removes nothing, so it works within the folder of the one that waits for it.
  constexpr const char* kFolder = "BRAID_TEST_VERIFIED_FOLDER";
  const char* const inherited = std::getenv(kFolder);
  const std::optional<Folder> own = inherited == nullptr ? std::optional<Folder>(std::in_place) : std::nullopt;
  const std::string root = own ? own->path() : inherited;
  ::setenv(kFolder, root.c_str(), 1);
  const auto serve = [&root](const std::string& name, const std::function<void(Rig&)>& spoil) {
    const std::string folder = root + "/" + name;
    std::filesystem::create_directory(folder);
    SchedulerOptions options = tier_options(100, true);
    const auto prompt = Rig::prompt_of(5, 1);  // one block: of several, the first to be read is the first to be compared
    {
      Server server(folder, options);
      server.cached(prompt);
      server.rig->run_to_end();
    }
    options.kv_verify = true;
    Server server(folder, options);
    spoil(*server.rig);
    server.cached(prompt);
    server.rig->run_to_end();
  };
  if (own) serve("right", [](Rig&) {});
  EXPECT_DEATH(serve("wrong", [](Rig& rig) { rig.model.spoil_saves(); }), "kv-verify: the block in the disk cache of positions 0 to 3 of request");
  ::unsetenv(kFolder);
}

TEST(PrefixCacheDeathTest, VerifyingAbortsAtADifferenceInRam) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto serve = [](bool is_spoilt) {
    SchedulerOptions options = Rig::small_options();
    options.kv_verify = true;
    Rig rig(options);
    rig.complete(Rig::prompt_of(50, 1), 3);
    if (is_spoilt) rig.model.spoil_checks();
    rig.complete(Rig::prompt_of(50, 1), 3);
    rig.complete(Rig::prompt_of(5, 2), 3);
    EXPECT_EQ(rig.scheduler->stats().cache_verified_blocks, 13U);
    rig.run_to_end();
  };
  serve(false);
  EXPECT_DEATH(serve(true), "kv-verify: the block in RAM of positions 0 to 3 of request");
}

// Many lives over one folder, with a disk that fails at times, little RAM and much preemption: every answer is right.
TEST(DiskTier, AnswersAreRightWhateverTheDiskLoses) {
  const Folder folder;
  std::mt19937 random(7);
  std::uint64_t restored = 0;
  for (int life = 0; life < 6; ++life) {
    const auto mood = std::make_shared<MoodyIo::Mood>();
    mood->fail_one_in = life % 2 == 0 ? 9 : 0;
    Server server(folder.path(), tier_options(60, life % 3 == 0), mood);
    for (int i = 0; i < 150; ++i) {
      const auto length = static_cast<std::int32_t>(5 + random() % 120);
      const auto key = static_cast<std::int32_t>(random() % 6);
      server.rig->start(Rig::prompt_of(length, key), static_cast<std::int32_t>(1 + random() % 30));
      if (random() % 4 != 0) continue;
      const auto wanted = server.rig->clients.size() - std::min<std::size_t>(server.rig->clients.size(), random() % 8);
      ASSERT_TRUE(server.rig->run_until([&] {
        return static_cast<std::size_t>(std::ranges::count_if(server.rig->clients, [](const auto& c) { return c->finished(); })) >= wanted;
      }));
    }
    server.rig->run_to_end();
    for (const auto& client : server.rig->clients) server.rig->expect_right(*client);
    restored += server.store->stats().reads;
    if (life % 2 == 0) continue;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      if (random() % 3 == 0 && entry.path().extension() == ".kv") std::filesystem::remove(entry.path());
  }
  EXPECT_GT(restored, 100U);
}

}  // namespace
}  // namespace braid::sched::test
