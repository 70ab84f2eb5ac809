// A program of its own: it replaces operator new and aligned_alloc as src/operator_new.cpp does, to take all memory from the loop's thread.
#include "app/reserve.h"
#include "braid/last_memory.h"
#include "sched/disk_rig.h"
#include "support/operator_delete.h"

#include <cstddef>
#include <cstdlib>
#include <gtest/gtest.h>
#include <limits>
#include <malloc.h>
#include <new>

namespace {

thread_local bool is_exhausted = false;  // for this thread
constexpr std::size_t kNoEnd = std::numeric_limits<std::size_t>::max();
thread_local std::size_t allowed = kNoEnd;  // so many allocations are left to it

void* from_system(std::size_t alignment, std::size_t size) {
  if (is_exhausted || allowed == 0) return nullptr;
  --allowed;
  return memalign(alignment, size);
}

constinit braid::app::Reserve reserve(from_system);
const bool is_filled = (reserve.fill(), true);

void* allocate(std::size_t size, std::align_val_t alignment = std::align_val_t(alignof(std::max_align_t))) {
  void* memory = from_system(static_cast<std::size_t>(alignment), size);
  if (memory == nullptr && braid::LastMemory::is_held()) memory = reserve.take(static_cast<std::size_t>(alignment), size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

extern "C" void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept { return reserve.allocate(alignment, size); }

void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
void* operator new(std::size_t size, std::align_val_t alignment) { return allocate(size, alignment); }
void* operator new[](std::size_t size, std::align_val_t alignment) { return allocate(size, alignment); }

namespace braid::sched::test {
namespace {

class Exhaustion : public testing::Test {
 protected:
  static SchedulerOptions tight() {
    SchedulerOptions options = Rig::small_options();
    options.blocks = 60;
    options.stream_capacity = 16;
    return options;
  }

  // What a client keeps is his own affair.
  Client& submit(std::int32_t prompt_length, std::int32_t max_tokens) {
    Client& client = rig.submit(prompt_length, max_tokens);
    client.tokens.reserve(static_cast<std::size_t>(max_tokens));
    return client;
  }

  template <class Condition>
  bool run_without_memory(Condition reached) {
    is_exhausted = true;
    const bool has_reached = rig.run_until(reached);
    is_exhausted = false;
    return has_reached;
  }

  Rig rig{tight()};
};

TEST_F(Exhaustion, WhoWasAcceptedGetsHisAnswer) {
  for (int i = 0; i < 20; ++i) submit(5 + i % 11, 40 + i * 5);
  EXPECT_TRUE(run_without_memory([&] { return rig.take_all(); }));
  EXPECT_GT(rig.scheduler->stats().preemptions, 0U);
  for (const auto& client : rig.clients) rig.expect_right(*client);
  rig.run_to_end();
}

TEST_F(Exhaustion, SlowReadersStallAndComeBack) {
  Client& slow = submit(20, 60);
  Client& quick = submit(9, 100);
  EXPECT_TRUE(run_without_memory([&] { return quick.take(), quick.finished() && rig.phase(slow) == SequencePhase::kStalled; }));
  EXPECT_TRUE(run_without_memory([&] { return slow.take(), slow.finished(); }));
  for (const auto& client : rig.clients) rig.expect_right(*client);
  rig.run_to_end();
}

TEST_F(Exhaustion, ClientsLeaveAndAreCancelled) {
  for (int i = 0; i < 12; ++i) submit(30, 100);
  ASSERT_TRUE(rig.run_until([&] { return rig.scheduler->stats().generated_tokens > 40; }));
  const auto leave = [&] {
    for (std::size_t i = 0; i < 12; i += 3) rig.clients[i]->ticket.reset();
    for (std::size_t i = 1; i < 12; i += 3) rig.scheduler->cancel(rig.clients[i]->id);
    return true;
  };
  EXPECT_TRUE(run_without_memory(leave));
  const auto all_done = [&] {
    for (const auto& client : rig.clients) client->take();
    return rig.scheduler->stats().finished == 4U;
  };
  EXPECT_TRUE(run_without_memory(all_done));
  EXPECT_EQ(rig.scheduler->stats().cancelled, 8U);
  for (std::size_t i = 2; i < 12; i += 3) rig.expect_right(*rig.clients[i]);
  rig.run_to_end();
}

TEST_F(Exhaustion, ANewRequestIsRefusedAndLeavesNothing) {
  submit(5, 200);
  const std::vector<TokenId> prompt = Rig::prompt_of(300, 7);
  GenerationRequest request;
  request.prompt = prompt;
  request.stop.max_tokens = 10;
  is_exhausted = true;
  EXPECT_THROW(static_cast<void>(rig.scheduler->submit(std::move(request))), std::bad_alloc);
  is_exhausted = false;
  EXPECT_EQ(rig.scheduler->stats().waiting, 1U);
  EXPECT_TRUE(rig.run_until([&] { return rig.take_all(); }));
  rig.expect_right(*rig.clients[0]);
  rig.run_to_end();
}

// At each allocation that it makes: its prefix is being looked for on disk, and then read.
TEST(ExhaustionWithADisk, ANewRequestIsRefusedAndLeavesNothing) {
  const Folder folder;
  const std::vector<TokenId> prompt = Rig::prompt_of(60, 1);
  {
    Server server(folder.path(), tier_options(100, true));
    server.cached(prompt);
    server.rig->run_to_end();
  }
  Server server(folder.path(), tier_options(100));
  bool is_refused = true;
  for (std::size_t allocations = 0; is_refused; ++allocations) {
    GenerationRequest request;
    request.id = "request";
    request.prompt = prompt;
    request.stop.max_tokens = 3;
    try {
      allowed = allocations;
      static_cast<void>(server.rig->scheduler->submit(std::move(request)));
      is_refused = false;
    } catch (const std::bad_alloc&) {
    }
    allowed = kNoEnd;
    server.settle();
    ASSERT_TRUE(server.store->idle()) << "after " << allocations;
    ASSERT_EQ(server.store->free_buffers(), server.buffers) << "after " << allocations;
    server.rig->expect_nothing_held();
  }
  const EngineStats stats = server.rig->scheduler->stats();
  EXPECT_EQ(stats.submitted, stats.cancelled + stats.finished);
  EXPECT_EQ(server.cached(prompt), 56);
  server.rig->run_to_end();
}

// A buffer is larger than what is set aside.
TEST(ExhaustionWithADisk, WhatFindsNoMemoryForABufferIsNotSaved) {
  const Folder folder;
  SchedulerOptions options = tier_options(20);
  options.context_length = 4096;
  Server server(folder.path(), options);
  server.cached(Rig::prompt_of(41, 1));
  Client& evicts = server.rig->submit(Rig::prompt_of(60, 2), 10);
  evicts.tokens.reserve(10);
  std::vector<void*> large;
  while (void* block = reserve.take(braid::app::Reserve::kAlignment, std::size_t{512} << 10)) large.push_back(block);
  is_exhausted = true;
  const bool has_ended = server.rig->run_until([&] { return evicts.take(), evicts.finished(); });
  is_exhausted = false;
  for (void* block : large) std::free(block);
  EXPECT_TRUE(has_ended);
  server.rig->expect_right(evicts);
  EXPECT_GT(server.store->stats().writes_dropped, 0U);
  server.rig->run_to_end();
}

}  // namespace
}  // namespace braid::sched::test
