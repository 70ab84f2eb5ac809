// A program of its own: it replaces operator new, to let allocations of the loop's thread fail. Asio's own, which it takes from
// std::aligned_alloc, do not fail here: they would end the process (app/exhausted.h).
#include "net/test_server.h"
#include "support/operator_delete.h"

#include <cstdint>
#include <cstdlib>
#include <gtest/gtest.h>
#include <limits>
#include <malloc.h>
#include <new>
#include <string>

namespace {

thread_local std::int64_t allocations_left = std::numeric_limits<std::int64_t>::max();  // of this thread; then one fails

bool may_allocate() { return allocations_left-- != 0; }

void* or_throw(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void* plain(std::size_t size) { return or_throw(may_allocate() ? std::malloc(size) : nullptr); }

void* aligned(std::size_t size, std::align_val_t alignment) {
  return or_throw(may_allocate() ? memalign(static_cast<std::size_t>(alignment), size) : nullptr);
}

}  // namespace

void* operator new(std::size_t size) { return plain(size); }
void* operator new[](std::size_t size) { return plain(size); }
void* operator new(std::size_t size, std::align_val_t alignment) { return aligned(size, alignment); }
void* operator new[](std::size_t size, std::align_val_t alignment) { return aligned(size, alignment); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return may_allocate() ? std::malloc(size) : nullptr; }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return may_allocate() ? std::malloc(size) : nullptr; }

namespace braid::test {
namespace {

constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();

class Exhaustion : public testing::TestWithParam<const char*> {
 protected:
  // Lets one allocation of the loop fail, after `spared` others, while a client asks and reads what it gets. False when there were not so
  // many.
  bool fails_after(std::int64_t spared) {
    bool failed = false;
    server.on_loop([&] { allocations_left = spared; });
    {
      RawClient client = server.connect();
      client.send(request);
      client.read_to_close();
    }
    server.on_loop([&] { failed = std::exchange(allocations_left, kAll) < 0; });
    return failed;
  }

  TestServer server;
  const std::string request = post("/v1/completions", GetParam(), "Connection: close\r\n");
};

TEST_P(Exhaustion, CostsTheConnectionAndNothingElse) {
  server.ask(request);
  std::int64_t spared = 0;
  for (bool failed = true; failed && spared < 10'000 && !HasFailure(); ++spared) {
    failed = fails_after(spared);
    EXPECT_TRUE(server.eventually([&] { return server.server().open_connections() == 0 && server.engine().live.empty(); })) << spared;
    EXPECT_EQ(server.ask(post("/v1/completions", R"({"prompt":"a"})")).status, 200) << spared;
  }
  EXPECT_GT(spared, 20);
  EXPECT_LT(spared, 10'000);
}

INSTANTIATE_TEST_SUITE_P(Requests, Exhaustion,
                         testing::Values(R"({"prompt":"a","stream":true})", R"({"prompt":"a"})", R"({"prompt":"a","n":3,"stream":true})"),
                         [](const testing::TestParamInfo<const char*>& request) { return std::to_string(request.index); });

}  // namespace
}  // namespace braid::test
