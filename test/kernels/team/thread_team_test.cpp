#include "kernels/thread_team.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <latch>
#include <string>
#include <sys/resource.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <vector>

namespace braid::kernels {
namespace {

TEST(ThreadTeam, CoversEveryIndexOnce) {
  for (const int threads : {1, 2, 3, 5}) {
    ThreadTeam team(threads);
    EXPECT_EQ(team.size(), threads);
    for (const std::int64_t count : {0, 1, 7, 100, 1000}) {
      for (const std::int64_t chunk : {1, 3, 64, 5000}) {
        std::vector<int> visits(static_cast<std::size_t>(count), 0);
        team.for_chunks(count, chunk, [&](std::int64_t begin, std::int64_t end, int member) {
          ASSERT_LE(end - begin, chunk);
          ASSERT_GE(member, 0);
          ASSERT_LT(member, threads);
          for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
        });
        EXPECT_TRUE(std::all_of(visits.begin(), visits.end(), [](int n) { return n == 1; }));
      }
    }
  }
}

TEST(ThreadTeam, WritesOfOneLoopAreSeenByTheNext) {
  ThreadTeam team(3);
  std::vector<std::int64_t> values(97, 0);
  constexpr int kLoops = 3000;
  for (int loop = 0; loop < kLoops; ++loop) {
    team.for_chunks(97, 5, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = begin; i < end; ++i) values[static_cast<std::size_t>(i)] += i;
    });
  }
  for (std::int64_t i = 0; i < 97; ++i) EXPECT_EQ(values[static_cast<std::size_t>(i)], i * kLoops);
}

TEST(ThreadTeam, MembersDoNotShareScratch) {
  ThreadTeam team(4);
  std::vector<std::int64_t> sums(4, 0);
  for (int loop = 0; loop < 200; ++loop) {
    team.for_chunks(64, 1, [&](std::int64_t begin, std::int64_t, int member) { sums[static_cast<std::size_t>(member)] += begin; });
  }
  std::int64_t total = 0;
  for (const std::int64_t sum : sums) total += sum;
  EXPECT_EQ(total, 200 * (63 * 64 / 2));
}

TEST(ThreadTeam, SleepingMembersWakeForALaterLoop) {
  ThreadTeam team(2);
  std::atomic<bool> helped{false};
  // The owner holds one chunk until the other member has taken the second, which needs the member to wake from its sleep.
  for (int loop = 0; loop < 3; ++loop) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    helped = false;
    team.for_chunks(2, 1, [&](std::int64_t, std::int64_t, int member) {
      if (member == 1) {
        helped = true;
        helped.notify_all();
      } else {
        helped.wait(false);
      }
    });
    EXPECT_TRUE(helped);
  }
}

TEST(ThreadTeam, PinsEachMemberToItsProcessorAndNobodyElse) {
  const std::vector<int> allowed = allowed_cpus();
  ASSERT_FALSE(allowed.empty());
  const std::vector<int> cpus = {allowed.front(), allowed.back()};
  std::vector<std::vector<int>> seen(2);
  std::thread strand;  // the test's own thread stays as it is
  {
    ThreadTeam team(2, cpus);
    strand = std::thread([&] {
      team.pin_strand();
      std::latch both(2);  // neither takes the other's chunk
      team.for_chunks(2, 1, [&](std::int64_t, std::int64_t, int member) {
        seen[static_cast<std::size_t>(member)] = allowed_cpus();
        both.arrive_and_wait();
      });
    });
    strand.join();
  }
  EXPECT_EQ(seen[0], std::vector<int>{cpus[0]});
  EXPECT_EQ(seen[1], std::vector<int>{cpus[1]});
  EXPECT_EQ(allowed_cpus(), allowed);
}

TEST(ThreadTeam, EndsWhileIdleOrAsleep) {
  std::atomic<int> chunks{0};
  for (int i = 0; i < 50; ++i) {
    ThreadTeam team(3);
    if (i % 2 == 0) team.for_chunks(10, 1, [&](std::int64_t, std::int64_t, int) { ++chunks; });
    if (i % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(chunks, 250);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which want more addresses than the limit leaves

// Leaves room for the stacks of a few threads, as a limit on processes would; that one does not hold for root.
[[noreturn]] void start_more_threads_than_there_may_be() {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t bytes = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (64U << 20);
  const rlimit limit{bytes, bytes};
  setrlimit(RLIMIT_AS, &limit);
  alarm(30);  // instead of waiting forever
  try {
    const ThreadTeam team(1000);
  } catch (const std::system_error& refusal) {
    std::_Exit(std::string(refusal.what()).find("of 1000 compute threads") != std::string::npos ? 0 : 2);
  }
  std::_Exit(1);
}

TEST(ThreadTeam, EndsWhatItHasStartedWhereThereAreTooFewThreads) {
  EXPECT_EXIT(start_more_threads_than_there_may_be(), testing::ExitedWithCode(0), "");
}

#endif

}  // namespace
}  // namespace braid::kernels
