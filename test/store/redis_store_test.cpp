// Blocks that servers share in a Redis, and what a Redis can do wrong: each costs a miss.
#include "store/redis/redis_store.h"

#include "store/fake_redis.h"
#include "store/layered_store.h"
#include "store/rig.h"

#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace braid::store::test {
namespace {

// One server's part of it.
struct Sharer {
  Loop loop;
  std::unique_ptr<RedisStore> store;

  explicit Sharer(const FakeRedis& redis, std::chrono::milliseconds timeout = std::chrono::minutes(1), const std::string& password = {})
      : Sharer(RedisAddress{.host = {}, .socket = redis.path(), .user = {}, .password = password}, timeout) {}
  Sharer(RedisAddress address, std::chrono::milliseconds timeout) {
    const StoreOptions small = small_options({});
    RedisOptions options;
    options.address = std::move(address);
    options.timeout = timeout;
    options.identity = small.identity;
    options.payload_bytes = small.payload_bytes;
    options.pause = std::chrono::hours(1);
    auto opened = RedisStore::open(std::move(options), record_buffers(small), loop.post());
    EXPECT_TRUE(opened.has_value());
    if (opened) store = std::move(*opened);
  }

  bool write(const Block& block) { return test::write(*store, loop, block); }
  bool read(const Block& block) { return test::read(*store, loop, block); }

  bool look_up(const std::vector<Block>& blocks) {
    std::vector<cache::PrefixKey> keys;
    for (const Block& block : blocks) keys.push_back(block.key);
    bool is_answered = false;
    store->look_up(std::move(keys), [&] { is_answered = true; });
    return loop.run_until([&] { return is_answered; });
  }
};

TEST(RedisStore, WhatOneServerWritesAnotherFinds) {
  const FakeRedis redis;
  ASSERT_TRUE(redis.is_bound());
  Sharer one(redis);
  Sharer other(redis);
  const std::vector<Block> blocks = {Block(1, 0), Block(1, 1), Block(2, 0)};
  EXPECT_TRUE(one.write(blocks[0]));
  EXPECT_TRUE(one.write(blocks[1]));
  EXPECT_FALSE(other.store->contains(blocks[0].key)) << "nobody has asked";
  EXPECT_FALSE(other.store->knows(blocks[0].key));
  ASSERT_TRUE(other.look_up(blocks));
  for (const Block& block : blocks) EXPECT_TRUE(other.store->knows(block.key));
  EXPECT_TRUE(other.read(blocks[0]));
  EXPECT_TRUE(other.read(blocks[1]));
  EXPECT_FALSE(other.read(blocks[2]));
  EXPECT_TRUE(other.store->lacks(blocks[2].key));
  const RedisCacheStats stats = other.store->stats();
  EXPECT_EQ(stats.reads, 2U);
  EXPECT_GT(stats.read_bytes, 2000U);
  EXPECT_EQ(stats.lookups, 1U);
  EXPECT_EQ(stats.failures + stats.lookup_errors + stats.read_errors, 0U);
}

TEST(RedisStore, WhatAnotherHasWrittenIsNotSentAgain) {
  FakeRedis redis;
  Sharer one(redis);
  Sharer other(redis);
  EXPECT_TRUE(one.write(Block(1, 0)));
  EXPECT_TRUE(other.write(Block(1, 0)));
  EXPECT_EQ(one.store->stats().writes, 1U);
  EXPECT_EQ(other.store->stats().writes, 0U);
  EXPECT_EQ(other.store->stats().writes_known, 1U);
  EXPECT_FALSE(one.store->lacks(Block(1, 0).key));
  ASSERT_EQ(redis.values().size(), 1U);
  EXPECT_TRUE(redis.values().begin()->first.starts_with("braid:"));
  for (const FakeRedis::Words& words : redis.heard()) {
    if (words[0] == "SET") {
      EXPECT_EQ((std::vector(words.begin() + 3, words.end())), (FakeRedis::Words{"EX", "604800"}));
    }
  }
}

TEST(RedisStore, DamagedValuesAreMissesAndAreDeleted) {
  const std::vector<std::function<void(std::string&)>> damages = {[](std::string& value) { value[value.size() / 2] ^= 1; },
                                                                  [](std::string& value) { value[20] ^= 1; },
                                                                  [](std::string& value) { value.resize(value.size() - 64); },
                                                                  [](std::string& value) { value.clear(); },
                                                                  [](std::string& value) { value += std::string(64, '\0'); },
                                                                  [](std::string& value) { value.assign(50'000, 'x'); },
                                                                  [](std::string& value) { value = "braidKV2"; }};
  for (std::size_t i = 0; i < damages.size(); ++i) {
    FakeRedis redis;
    Sharer one(redis);
    const Block block(1, 3);
    ASSERT_TRUE(one.write(block));
    redis.change(damages[i]);
    EXPECT_FALSE(one.read(block)) << i;
    EXPECT_EQ(one.store->stats().read_errors, 1U) << i;
    EXPECT_TRUE(redis.values().empty()) << i << ": it would be found for ever";
    EXPECT_TRUE(one.write(block)) << i;
    EXPECT_TRUE(one.read(block)) << i;
  }
}

TEST(RedisStore, RecordsOfOtherTokensOrModelsAreMisses) {
  FakeRedis redis;
  Sharer one(redis);
  Block other(2, 0);
  ASSERT_TRUE(one.write(other));
  const std::string value = redis.values().begin()->second;
  const Block block(1, 0);
  ASSERT_TRUE(one.write(block));
  redis.change([&](std::string& each) { each = value; });
  EXPECT_FALSE(one.read(block)) << "the record has another key";
  EXPECT_TRUE(one.read(other));
  other.prefix.tokens[0] += 1;
  EXPECT_FALSE(one.read(other)) << "a collision of keys";
}

TEST(RedisStore, ABlockThatIsGoneMeanwhileIsAMiss) {
  FakeRedis redis;
  Sharer one(redis);
  ASSERT_TRUE(one.write(Block(1, 0)));
  redis.answer([](const FakeRedis::Words& words) { return words[0] == "GET" ? "$-1\r\n" : ""; });
  EXPECT_FALSE(one.read(Block(1, 0)));
  EXPECT_EQ(one.store->stats().read_misses, 1U);
  EXPECT_EQ(one.store->stats().failures, 0U);
  EXPECT_FALSE(one.store->contains(Block(1, 0).key));
}

// Whatever comes as an answer, nothing is found, and nothing of it is asked for a while.
TEST(RedisStore, NonsenseIsAMiss) {
  for (const std::string& nonsense :
       {std::string("*1000000000\r\n"), std::string("*-7\r\n"), std::string("$99999999999999999999\r\n"), std::string("$4000000000\r\nabc"),
        std::string("hello\r\n"), std::string("HTTP/1.1 200 OK\r\n\r\n"), std::string(":many\r\n"), std::string("-NOAUTH first\r\n"),
        std::string("-\r\n"), std::string("*2\r\n:1\r\n:1\r\n"), std::string("+OK\r\n"), "+" + std::string(300'000, 'x'),
        "$300000\r\n" + std::string(300'000, 'x'), std::string("\0\0\0\0\r\n", 6)}) {
    FakeRedis redis;
    Sharer one(redis, std::chrono::milliseconds(500));
    redis.answer([&](const FakeRedis::Words&) { return nonsense; });
    ASSERT_TRUE(one.look_up({Block(1, 1)})) << nonsense.substr(0, 20);
    EXPECT_FALSE(one.store->contains(Block(1, 1).key)) << nonsense.substr(0, 20);
    EXPECT_EQ(one.store->stats().lookup_errors, 1U) << nonsense.substr(0, 20);
    EXPECT_TRUE(one.store->knows(Block(9, 9).key)) << "it is left alone";
    EXPECT_FALSE(one.store->lacks(Block(9, 9).key)) << "it is left alone";
    Sharer other(redis, std::chrono::milliseconds(500));
    EXPECT_FALSE(other.write(Block(1, 0))) << nonsense.substr(0, 20);
    EXPECT_TRUE(other.store->idle());
  }
}

TEST(RedisStore, OneThatNeverAnswersCostsItsTimeOnce) {
  FakeRedis redis;
  Sharer one(redis);
  ASSERT_TRUE(one.write(Block(1, 0)));
  redis.answer([](const FakeRedis::Words&) { return "-"; });
  Sharer other(redis, std::chrono::milliseconds(50));
  ASSERT_TRUE(other.look_up({Block(1, 0), Block(2, 0)}));
  EXPECT_FALSE(other.store->contains(Block(1, 0).key));
  EXPECT_FALSE(other.store->stats().is_up);
  EXPECT_FALSE(other.write(Block(3, 0)));
  EXPECT_EQ(other.store->stats().failures, 1U) << "the others have not been asked";
}

TEST(RedisStore, NothingListensThere) {
  const Folder folder;
  for (const RedisAddress& address : {RedisAddress{.host = {}, .socket = folder.path() + "/none", .user = {}, .password = {}},
                                      RedisAddress{.host = "127.0.0.1", .port = 1, .socket = {}, .user = {}, .password = {}}}) {
    Sharer one(address, std::chrono::seconds(30));
    ASSERT_TRUE(one.look_up({Block(1, 0)}));
    EXPECT_EQ(one.store->stats().failures, 1U);
    EXPECT_FALSE(one.write(Block(1, 0)));
  }
}

TEST(RedisStore, AFullOneIsStillRead) {
  FakeRedis redis;
  Sharer one(redis);
  ASSERT_TRUE(one.write(Block(1, 0)));
  redis.answer([](const FakeRedis::Words& words) {
    return words[0] == "SET" ? "-OOM command not allowed when used memory > 'maxmemory'.\r\n" : "";
  });
  EXPECT_FALSE(one.write(Block(2, 0)));
  EXPECT_EQ(one.store->stats().write_errors, 1U);
  EXPECT_EQ(one.store->stats().failures, 0U);
  EXPECT_FALSE(one.store->lacks(Block(3, 0).key)) << "nothing is written for a while";
  EXPECT_TRUE(one.read(Block(1, 0)));
}

TEST(RedisStore, SignsInAndSelects) {
  FakeRedis redis;
  redis.answer([](const FakeRedis::Words& words) {
    return words[0] == "AUTH" && words.back() != "right" ? "-WRONGPASS invalid username-password pair\r\n" : "";
  });
  Sharer stranger(redis, std::chrono::minutes(1), "wrong");
  EXPECT_FALSE(stranger.write(Block(1, 0)));
  EXPECT_EQ(stranger.store->stats().failures, 1U);
  RedisAddress address{.host = {}, .socket = redis.path(), .user = "braid", .password = "right"};
  address.database = 3;
  Sharer friendly(address, std::chrono::minutes(1));
  EXPECT_TRUE(friendly.write(Block(1, 0)));
  const auto heard = redis.heard();
  EXPECT_NE(std::ranges::find(heard, FakeRedis::Words{"AUTH", "braid", "right"}), heard.end());
  EXPECT_NE(std::ranges::find(heard, FakeRedis::Words{"SELECT", "3"}), heard.end());
  EXPECT_EQ(address.name().find("right"), std::string::npos);
}

TEST(RedisStore, AConnectionThatWasClosedIsMadeAnew) {
  auto redis = std::make_unique<FakeRedis>();
  Sharer one(*redis);
  ASSERT_TRUE(one.write(Block(1, 0)));
  // Says something unasked, as a proxy would before it hangs up: this connection is of no use for the next command.
  redis->answer([](const FakeRedis::Words& words) { return words[0] == "SET" ? "+OK\r\n-ERR idle for too long\r\n" : ""; });
  EXPECT_TRUE(one.write(Block(2, 0)));
  redis->answer({});
  EXPECT_TRUE(one.write(Block(3, 0)));
  EXPECT_EQ(one.store->stats().failures, 0U);
}

TEST(RedisStore, ItsEndWaitsForNoAnswer) {
  FakeRedis redis;
  redis.answer([](const FakeRedis::Words&) { return "-"; });
  Sharer one(redis, std::chrono::hours(1));
  one.store->look_up({Block(1, 0).key}, [] { FAIL() << "it has not been answered"; });
  auto record = one.store->begin_write(Block(1, 0).key, Block(1, 0).prefix.view());
  ASSERT_TRUE(record.has_value());
  one.store->commit(std::move(*record));
  one.store.reset();
}

TEST(RedisStore, BlocksGoToTheDiskAndFromThereToTheOthers) {
  FakeRedis redis;
  const Folder folder;
  Rig disk(small_options(folder.path()));
  const StoreOptions small = small_options({});
  RedisOptions options;
  options.address.socket = redis.path();
  options.timeout = std::chrono::minutes(1);
  options.identity = small.identity;
  options.payload_bytes = small.payload_bytes;
  const auto shared = RedisStore::open(options, disk.store->buffers(), disk.loop.post()).value();
  ASSERT_NE(shared, nullptr);
  LayeredStore both(*disk.store, *shared);
  const std::size_t buffers = both.free_buffers();
  ASSERT_TRUE(write(both, disk.loop, Block(1, 0)));
  EXPECT_TRUE(disk.store->contains(Block(1, 0).key));
  EXPECT_EQ(redis.values().size(), 1U);
  EXPECT_FALSE(both.lacks(Block(1, 0).key));
  EXPECT_EQ(both.free_buffers(), buffers);
  Sharer other(redis);
  ASSERT_TRUE(other.write(Block(2, 0)));
  ASSERT_TRUE(other.look_up({Block(1, 0)}));
  EXPECT_TRUE(other.read(Block(1, 0)));
  // What only the others have is read from there.
  EXPECT_FALSE(both.knows(Block(2, 0).key));
  bool is_answered = false;
  both.look_up({Block(2, 0).key}, [&] { is_answered = true; });
  ASSERT_TRUE(disk.loop.run_until([&] { return is_answered; }));
  EXPECT_TRUE(both.lacks(Block(2, 0).key)) << "the disk does";
  std::optional<bool> found;
  ASSERT_TRUE(both.read(Block(2, 0).key, std::make_shared<const Prefix>(Block(2, 0).prefix), Block(2, 0).prefix.tokens.size(),
                        [&](const std::optional<ReadBlock>& read) { found = read.has_value(); }));
  ASSERT_TRUE(disk.loop.run_until([&] { return found.has_value(); }));
  EXPECT_TRUE(*found);
  EngineStats stats;
  both.fill(stats);
  EXPECT_EQ(stats.disk->writes, 1U);
  EXPECT_EQ(stats.redis->writes, 1U);
  EXPECT_EQ(stats.redis->reads, 1U);
}

TEST(RedisStore, ADiskThatTakesNothingDoesNotKeepBlocksFromTheOthers) {
  FakeRedis redis;
  const Folder folder;
  const auto faults = std::make_shared<FaultyIo::Faults>();
  faults->write_error = ENOSPC;
  Rig disk(small_options(folder.path()), std::make_unique<FaultyIo>(faults));
  RedisOptions options;
  options.address.socket = redis.path();
  options.timeout = std::chrono::minutes(1);
  options.identity = small_options({}).identity;
  options.payload_bytes = small_options({}).payload_bytes;
  const auto shared = RedisStore::open(options, disk.store->buffers(), disk.loop.post()).value();
  ASSERT_NE(shared, nullptr);
  LayeredStore both(*disk.store, *shared);
  for (const std::int32_t seed : {1, 2, 3}) {
    ASSERT_TRUE(begin_write(both, Block(seed, 0))) << seed;
    ASSERT_TRUE(disk.loop.run_until([&] { return both.idle(); }));
  }
  EXPECT_EQ(redis.values().size(), 3U);
  EXPECT_EQ(disk.store->stats().write_errors, 1U) << "then it is left alone";
}

TEST(RedisHealth, PausesGrowUntilSomethingWorks) {
  using std::chrono::seconds;
  RedisHealth health{seconds(1)};
  const RedisHealth::Clock::time_point begun = RedisHealth::Clock::now();
  EXPECT_FALSE(health.is_down(begun));
  health.fails(begun);
  health.fails(begun);
  EXPECT_TRUE(health.is_down(begun + std::chrono::milliseconds(999)));
  EXPECT_FALSE(health.is_down(begun + seconds(1)));
  health.fails(begun + seconds(1));
  EXPECT_TRUE(health.is_down(begun + std::chrono::milliseconds(2999)));
  EXPECT_FALSE(health.is_down(begun + seconds(3)));
  for (int i = 1; i < 20; ++i) health.fails(begun + i * seconds(100));
  EXPECT_TRUE(health.is_down(begun + seconds(1929)));
  EXPECT_FALSE(health.is_down(begun + seconds(1930)));
  health.works();
  health.fails(begun + seconds(2000));
  EXPECT_FALSE(health.is_down(begun + seconds(2001)));
}

TEST(KnownKeys, AreForgottenInTime) {
  KnownKeys known;
  const KnownKeys::Clock::time_point now = KnownKeys::Clock::now();
  known.put({1, 1}, true, now);
  known.put({2, 2}, false, now);
  EXPECT_EQ(known.find({1, 1}, now), true);
  EXPECT_EQ(known.find({2, 2}, now), false);
  EXPECT_EQ(known.find({3, 3}, now), std::nullopt);
  EXPECT_EQ(known.find({2, 2}, now + KnownKeys::kMissing), std::nullopt);
  EXPECT_EQ(known.find({1, 1}, now + KnownKeys::kMissing), true);
  EXPECT_EQ(known.find({1, 1}, now + KnownKeys::kPresent), std::nullopt);
  for (std::uint64_t i = 0; i < 2 * KnownKeys::kMost; ++i) known.put({i, i}, true, now);
  EXPECT_LE(known.size(), KnownKeys::kMost) << "however many there are";
}

TEST(RedisAddress, IsReadFromUrls) {
  const RedisAddress plain = parse_redis_url("redis://cache.local").value();
  EXPECT_EQ(plain.name(), "cache.local:6379");
  const RedisAddress whole = parse_redis_url("redis://me:p%40ss%3A/%2f@[::1]:7000/4").value();
  EXPECT_EQ(whole.user, "me");
  EXPECT_EQ(whole.password,
            "p@ss:/"
            "/");
  EXPECT_EQ(whole.name(), "[::1]:7000/4");
  const RedisAddress socket = parse_redis_url("unix://:secret@/run/redis.sock?db=2").value();
  EXPECT_EQ(socket.password, "secret");
  EXPECT_EQ(socket.user, "");
  EXPECT_EQ(socket.name(), "/run/redis.sock?db=2");
  for (const std::string wrong : {"", "secret", "http://secret", "rediss://:secret@host", "redis://", "redis://secret@host",
                                  "redis://:@secret", "redis://:secret@host:0", "redis://:secret@host:70000", "redis://:secret@host:12x",
                                  "redis://:secret@host/a", "redis://:secret@[::1", "redis://:se%cret%4@host", "unix://:secret@relative",
                                  "unix:///secret?user=1", "unix:///secret?db=-1", "redis://:secret@host/99999999999"}) {
    const Result<RedisAddress> address = parse_redis_url(wrong);
    ASSERT_FALSE(address.has_value()) << wrong;
    EXPECT_EQ(address.error().message.find("secret"), std::string::npos) << "it would be logged";
  }
}

}  // namespace
}  // namespace braid::store::test
