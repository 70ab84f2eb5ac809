#include "app/exhausted.h"

#include <csignal>
#include <exception>
#include <gtest/gtest.h>
#include <new>
#include <thread>

namespace braid::app {
namespace {

template <class Exception>
void fail() {
  throw Exception();
}

void call_where_nobody_can_be_told(void (*work)()) noexcept { work(); }

TEST(Exhausted, AllocationsThatFailWhereNobodyCanBeToldEndTheProcessWithASentence) {
  const auto run = [] {
    end_when_exhausted();
    std::thread(fail<std::bad_alloc>).join();
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(kExhaustedExitCode), "the system gives no more memory");
  const auto run_here = [] {
    end_when_exhausted();
    call_where_nobody_can_be_told(fail<std::bad_alloc>);
  };
  EXPECT_EXIT(run_here(), testing::ExitedWithCode(kExhaustedExitCode), "the system gives no more memory");
}

TEST(Exhausted, OtherExceptionsEndItAsBefore) {
  const auto run = [] {
    end_when_exhausted();
    call_where_nobody_can_be_told(fail<std::bad_exception>);
  };
  EXPECT_EXIT(run(), testing::KilledBySignal(SIGABRT), "");
}

}  // namespace
}  // namespace braid::app
