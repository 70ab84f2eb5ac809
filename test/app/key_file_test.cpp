// The file of API keys.
#include "app/key_file.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <string>

namespace braid::app {
namespace {

using net::access::ApiKey;
using net::access::digest_of;

Result<std::vector<ApiKey>> parse(std::string_view text, const net::access::Limits& limits = {}) {
  return parse_api_keys(text, limits, "keys");
}

TEST(KeyFile, HasAKeyALineWithItsSettings) {
  const auto keys = parse(
      "# ours\n\nalice sk-1\n  bob\tsk#2 requests-per-minute=60 tokens-per-minute=0 concurrent-requests=3 priority=5 "
      "best-priority=-1 cache-salt=b administrator # until May\r\n",
      {7, 8, 9});
  ASSERT_TRUE(keys) << keys.error().message;
  ASSERT_EQ(keys->size(), 2U);
  EXPECT_EQ((*keys)[0].name, "alice");
  EXPECT_EQ((*keys)[0].digest, digest_of("sk-1"));
  EXPECT_EQ((*keys)[0].rules.limits.requests_per_minute, 7U);
  EXPECT_EQ((*keys)[0].rules.limits.tokens_per_minute, 8U);
  EXPECT_EQ((*keys)[0].rules.limits.concurrent_requests, 9U);
  EXPECT_EQ((*keys)[1].digest, digest_of("sk#2"));
  const net::access::Rules& rules = (*keys)[1].rules;
  EXPECT_EQ(rules.limits.requests_per_minute, 60U);
  EXPECT_EQ(rules.limits.tokens_per_minute, 0U);
  EXPECT_EQ(rules.limits.concurrent_requests, 3U);
  EXPECT_EQ(rules.priority, 5);
  EXPECT_EQ(rules.best_priority, -1);
  EXPECT_EQ(rules.cache_salt, "b");
  EXPECT_TRUE(rules.is_administrator);
  EXPECT_FALSE((*keys)[0].rules.is_administrator);
}

TEST(KeyFile, TellsWhatIsWrongAndQuotesNothing) {
  const std::pair<const char*, const char*> faults[] = {
      {"a sk-secret\nb", "keys:2: there is a name and no key"},
      {"b # sk-secret", "keys:1: there is a name and no key"},
      {"sk-secret/1 b", "keys:1: the name may have 64 letters, digits, '-', '_' and '.'"},
      {"a sk-secret\xC3\xA4", "keys:1: the key may have visible ASCII characters only"},
      {"a b sk-secret",
       "keys:1: a word behind the key is none of requests-per-minute=, tokens-per-minute=, concurrent-requests=, priority=, "
       "best-priority=, cache-salt= and administrator"},
      {"a b requests-per-minute=sk-secret", "keys:1: requests-per-minute is not a whole number from 0 to 4294967295"},
      {"a b priority=-101", "keys:1: priority is not a whole number from -100 to 100"},
      {"a b priority=1 best-priority=2", "keys:1: priority is better than best-priority"},
      {"a sk-secret\na other", "keys:2: another line has this name"},
      {"a sk-secret\nb sk-secret", "keys:2: another line has this key"},
  };
  for (const auto& [text, message] : faults) {
    const auto keys = parse(text);
    ASSERT_FALSE(keys) << text;
    EXPECT_EQ(keys.error().message, message);
    EXPECT_EQ(keys.error().message.find("secret"), std::string::npos);
  }
}

TEST(KeyFile, OfManyKeysIsRefused) {
  std::string text;
  for (int i = 0; i <= 4096; ++i) text += "n" + std::to_string(i) + " k" + std::to_string(i) + "\n";
  ASSERT_FALSE(parse(text));
  EXPECT_TRUE(parse(text.substr(0, text.rfind('n'))));
}

// A secret that ends in a new line, for example: nobody could be let in by it.
TEST(KeyFile, TheKeyInTheEnvironmentIsOneThatAHeaderCanShow) {
  ::setenv("BRAID_API_KEY", "sk-secret\n", 1);
  const auto unfit = load_api_keys("", {});
  ::setenv("BRAID_API_KEY", "sk-secret", 1);
  const auto fit = load_api_keys("", {});
  ::unsetenv("BRAID_API_KEY");
  ASSERT_FALSE(unfit);
  EXPECT_EQ(unfit.error().message, "BRAID_API_KEY may have visible ASCII characters only: no client could show another key");
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->front().digest, digest_of("sk-secret"));
}

TEST(KeyFile, ThatCannotBeReadIsAnError) {
  const auto keys = load_api_keys("/dev/null", {});
  ASSERT_FALSE(keys);
  EXPECT_EQ(keys.error().message, "--api-key-file: cannot read '/dev/null'");
  EXPECT_FALSE(load_api_keys("/no/such/file", {}));
  EXPECT_FALSE(load_api_keys("/proc/self/mem", {}));  // which opens, and fails when it is read
}

}  // namespace
}  // namespace braid::app
