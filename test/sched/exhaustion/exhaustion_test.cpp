// A program of its own: it replaces operator new as src/operator_new.cpp does, to take memory from the loop's thread.
#include "sched/disk_rig.h"
#include "support/operator_delete.h"

#include <cstddef>
#include <cstdlib>
#include <gtest/gtest.h>
#include <limits>
#include <malloc.h>
#include <new>

namespace {

constexpr std::size_t kNoEnd = std::numeric_limits<std::size_t>::max();
thread_local std::size_t allowed = kNoEnd;  // so many allocations are left to this thread
thread_local std::size_t largest = kNoEnd;  // and this is the size of its largest one

void* from_system(std::size_t alignment, std::size_t size) {
  if (allowed == 0 || size > largest) return nullptr;
  --allowed;
  return memalign(alignment, size);
}

void* allocate(std::size_t size, std::align_val_t alignment = std::align_val_t(alignof(std::max_align_t))) {
  void* memory = from_system(static_cast<std::size_t>(alignment), size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
void* operator new(std::size_t size, std::align_val_t alignment) { return allocate(size, alignment); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return from_system(alignof(std::max_align_t), size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return from_system(alignof(std::max_align_t), size); }
void* operator new[](std::size_t size, std::align_val_t alignment) { return allocate(size, alignment); }

namespace braid::sched::test {
namespace {

TEST(Exhaustion, ANewRequestIsRefusedAndLeavesNothing) {
  Rig rig;
  rig.submit(5, 200).tokens.reserve(200);
  const std::vector<TokenId> prompt = Rig::prompt_of(300, 7);
  bool is_refused = true;
  std::size_t allocations = 0;
  for (; is_refused; ++allocations) {
    GenerationRequest request;
    request.id = "request";
    request.prompt = prompt;
    request.stop.max_tokens = 10;
    try {
      allowed = allocations;
      const auto ticket = rig.scheduler->submit(std::move(request));
      allowed = kNoEnd;  // to end it
      is_refused = false;
    } catch (const std::bad_alloc&) {
    }
    allowed = kNoEnd;
    ASSERT_EQ(rig.scheduler->stats().waiting, 1U) << "after " << allocations;
  }
  EXPECT_GT(allocations, 3U);
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
      const auto ticket = server.rig->scheduler->submit(std::move(request));
      allowed = kNoEnd;  // to end it
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

TEST(ExhaustionWithADisk, WhatFindsNoMemoryForABufferIsNotSaved) {
  const Folder folder;
  SchedulerOptions options = tier_options(20);
  options.context_length = 4096;
  Server server(folder.path(), options);
  server.cached(Rig::prompt_of(41, 1));
  Client& evicts = server.rig->submit(Rig::prompt_of(60, 2), 10);
  evicts.tokens.reserve(10);
  largest = std::size_t{16} << 10;
  const bool has_ended = server.rig->run_until([&] { return evicts.take(), evicts.finished(); });
  largest = kNoEnd;
  EXPECT_TRUE(has_ended);
  server.rig->expect_right(evicts);
  EXPECT_GT(server.store->stats().writes_dropped, 0U);
  server.rig->run_to_end();
}

}  // namespace
}  // namespace braid::sched::test
