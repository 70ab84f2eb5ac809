// What goes on while the disk is read, fails or is slow, and when it is not read at all.
#include "sched/disk_rig.h"
#include "sched/restore_choice.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <vector>

namespace braid::sched::test {
namespace {

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
  std::vector<store::BlockStore::PendingRecord> hoarded;
  while (server.store->free_buffers() > 8) hoarded.push_back(*server.store->begin_write({1, 2}, {}));
  EXPECT_EQ(server.cached(prompt, 3), 496);
  server.rig->run_to_end();
}

// What the disk gives lies there while a step takes longer than patience with the disk lasts.
TEST(DiskTier, LongStepsDoNotEndARestoration) {
  const Folder folder;
  const auto prompt = Rig::prompt_of(100, 1);
  leave_on_disk(prompt, folder.path());
  SchedulerOptions options = tier_options(100, true);
  options.restore_patience = std::chrono::milliseconds(1'000);
  Server server(folder.path(), options);
  std::vector<store::BlockStore::PendingRecord> hoarded;
  while (server.store->free_buffers() > 4) hoarded.push_back(*server.store->begin_write({1, 2}, {}));
  server.rig->model.hold();
  Client& client = server.rig->submit(prompt, 3);
  bool is_over = false;
  boost::asio::steady_timer timer(server.rig->loop, std::chrono::milliseconds(1'500));
  timer.async_wait([&](const auto&) { is_over = true; });
  ASSERT_TRUE(server.rig->run_until([&] { return is_over; }));
  server.rig->model.release();
  EXPECT_EQ(server.rig->complete(client).finish->usage.cached_tokens, 96);
  server.rig->run_to_end();
}

// Of a server whose disk answers no read.
SchedulerOptions waits_for_ever() {
  SchedulerOptions options = tier_options(100, true);
  options.restore_patience = std::chrono::hours(1);
  return options;
}

TEST(DiskTier, OthersPassWhileReadsAreOut) {
  const Folder folder;
  const auto prompt = Rig::prompt_of(50, 1);
  leave_on_disk(prompt, folder.path());
  const auto mood = std::make_shared<MoodyIo::Mood>();
  mood->hold_reads = true;
  Server server(folder.path(), waits_for_ever(), mood);
  Client& stuck = server.rig->submit(prompt, 5);
  EXPECT_EQ(server.cached(Rig::prompt_of(60, 2)), 0);
  EXPECT_EQ(server.rig->phase(stuck), SequencePhase::kRestoring);
  stuck.ticket.reset();
  server.rig->expect_nothing_held();
}

TEST(DiskTier, WhatADiskDoesNotGiveIsComputedInTheEnd) {
  const Folder folder;
  const auto prompt = Rig::prompt_of(50, 1);
  leave_on_disk(prompt, folder.path());
  const auto mood = std::make_shared<MoodyIo::Mood>();
  mood->hold_reads = true;
  SchedulerOptions options = tier_options(100, true);
  options.restore_patience = std::chrono::milliseconds(50);
  Server server(folder.path(), options, mood);
  Client& stuck = server.rig->submit(prompt, 5);
  ASSERT_TRUE(server.rig->run_until([&] { return stuck.take(), stuck.finished(); }));
  server.rig->expect_right(stuck);
  EXPECT_EQ(stuck.finish->usage.cached_tokens, 0);
  server.rig->expect_nothing_held();
}

TEST(DiskTier, EqualPromptsAreReadOnce) {
  const Folder folder;
  const auto prompt = Rig::prompt_of(50, 1);
  leave_on_disk(prompt, folder.path());
  const auto mood = std::make_shared<MoodyIo::Mood>();
  mood->hold_reads = true;
  Server server(folder.path(), waits_for_ever(), mood);
  Client& first = server.rig->submit(prompt, 5);
  const std::size_t left = server.store->free_buffers();
  EXPECT_LT(left, server.buffers);
  const Client& second = server.rig->submit(prompt, 5);
  EXPECT_EQ(server.store->free_buffers(), left);
  server.rig->submit(prompt, 5, {}, "another's");
  EXPECT_EQ(server.store->free_buffers(), left) << "the disk has nothing of it";
  first.ticket.reset();
  ASSERT_TRUE(server.rig->run_until([&] { return server.rig->phase(second) == SequencePhase::kRestoring; }))
      << "without the first, by itself";
}

TEST(DiskTier, OthersGoOnAfterAFailedStepWhileReadsAreOut) {
  const Folder folder;
  const auto prompt = Rig::prompt_of(50, 1);
  leave_on_disk(prompt, folder.path());
  const auto mood = std::make_shared<MoodyIo::Mood>();
  mood->hold_reads = true;
  Server server(folder.path(), waits_for_ever(), mood);
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
  leave_on_disk(prompt, folder.path());
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
  leave_on_disk(prompt, folder.path());
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
  leave_on_disk(prompt, folder.path());
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
  leave_on_disk(prompt, folder.path());
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
