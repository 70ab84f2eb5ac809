#include "grammar/walk.h"

#include <gtest/gtest.h>
#include <thread>

namespace braid::test {
namespace {

TEST(Compiler, ServesManyThreads) {
  const grammar::Compiler compiler([] { return grammar::Vocabulary(toy_tokens(), {kEnd}); }, {.cached_constraints = 3});
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed)
    threads.emplace_back([&compiler, seed] {
      std::mt19937 random(seed);
      for (int i = 0; i < 40; ++i) {
        const auto constraint =
            compiler.compile(schema_spec(R"({"type":"array","items":{"type":"string","maxLength":)" + std::to_string(random() % 5) + "}}"));
        EXPECT_TRUE(random_walk(**constraint, random, 10).ended);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace braid::test
