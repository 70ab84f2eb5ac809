// Servers that share a store: each asks what the others have written, before it computes that itself. The fake's answers depend on what the
// blocks hold, so a wrong, stale or half-loaded block changes an answer.
#include "sched/disk_rig.h"
#include "store/record.h"
#include "store/record_store.h"

#include <boost/asio/post.hpp>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace braid::sched::test {
namespace {

using Key = std::pair<std::uint64_t, std::uint64_t>;
Key of(const cache::PrefixKey& key) { return {key.high, key.low}; }

// What all of them see.
struct Shelf {
  std::map<Key, std::vector<std::byte>> records;
  bool loses_all = false;   // what it has just said that it has
  bool hangs = false;       // what is written never ends
  bool is_silent = false;   // questions have no answer
  bool answers = true;      // or else nothing is known to be there when the time is up
  std::size_t asked = 0;    // keys
  std::size_t largest = 0;  // keys of one question
};

// One server's view of it: everything comes a turn of the loop later.
class ShelfStore final : public store::RecordStore {
 public:
  ShelfStore(Shelf& shelf, boost::asio::io_context& loop, std::size_t payload_bytes, std::size_t buffers)
      : shelf_(shelf), loop_(loop), payload_bytes_(payload_bytes), buffers_(payload_bytes + 16'384, buffers) {}

  bool contains(const cache::PrefixKey& key) const override { return present_.contains(of(key)); }
  bool knows(const cache::PrefixKey& key) const override { return known_.contains(of(key)); }
  void look_up(std::vector<cache::PrefixKey> keys, std::function<void()> done) override {
    shelf_.asked += keys.size();
    if (shelf_.is_silent) return;
    ++under_way_;
    shelf_.largest = std::max(shelf_.largest, keys.size());
    boost::asio::post(loop_, [this, keys = std::move(keys), done = std::move(done)] {
      for (const cache::PrefixKey& key : keys) {
        known_.insert(of(key));
        if (shelf_.answers && shelf_.records.contains(of(key))) present_.insert(of(key));
      }
      --under_way_;
      done();
    });
  }
  std::optional<store::PendingRecord> begin_write(const cache::PrefixKey& key, const cache::SequenceView& sequence) override {
    return store::compose_in(buffers_, key, {"the fake", sequence}, payload_bytes_, 1);
  }
  void commit(store::PendingRecord record) override {
    ++under_way_;
    if (shelf_.hangs) return hanging_.push_back(std::move(record));
    boost::asio::post(loop_, [this, record = std::make_shared<store::PendingRecord>(std::move(record))] {
      const auto bytes = record->buffer.bytes().first(record->header.record_bytes());
      store::seal_record(bytes, record->header);
      shelf_.records[of(record->header.key)].assign(bytes.begin(), bytes.end());
      present_.insert(of(record->header.key));
      known_.insert(of(record->header.key));
      *record = {};
      --under_way_;
      if (on_written_) on_written_();
    });
  }
  void on_written(std::function<void()> hook) override { on_written_ = std::move(hook); }
  bool read(const cache::PrefixKey& key, std::shared_ptr<const store::Prefix> prefix, std::size_t tokens,
            std::function<void(std::optional<store::ReadBlock>)> done) override {
    if (!contains(key)) return false;
    auto buffer = std::make_shared<store::Buffer>(buffers_.acquire());
    if (!*buffer) return false;
    ++under_way_;
    boost::asio::post(loop_, [this, key, prefix = std::move(prefix), tokens, buffer, done = std::move(done)] {
      --under_way_;
      const auto found = shelf_.records.find(of(key));
      if (found == shelf_.records.end() || shelf_.loses_all) {
        present_.erase(of(key));
        return done(std::nullopt);
      }
      const auto record = buffer->bytes().first(found->second.size());
      std::ranges::copy(found->second, record.begin());
      const auto payload = store::read_record(record, key, {"the fake", prefix->view().first(tokens)}, payload_bytes_);
      if (!payload) return done(std::nullopt);
      const auto begin = static_cast<std::size_t>(payload->data() - record.data());
      done(store::ReadBlock{std::move(*buffer), record.subspan(begin, payload->size())});
    });
    return true;
  }
  void tend() override {}
  std::size_t free_buffers() const override { return buffers_.free(); }
  bool idle() const override { return under_way_ == 0; }
  void fill(EngineStats& /*stats*/) const override {}

 private:
  Shelf& shelf_;
  boost::asio::io_context& loop_;
  const std::size_t payload_bytes_;
  store::BufferPool buffers_;
  std::function<void()> on_written_;
  std::vector<store::PendingRecord> hanging_;
  std::set<Key> present_;
  std::set<Key> known_;
  std::size_t under_way_ = 0;
};

struct Sharer {
  std::unique_ptr<ShelfStore> store;
  std::unique_ptr<Rig> rig;

  Sharer(Shelf& shelf, const SchedulerOptions& options, std::size_t buffers = 64) {
    rig = std::make_unique<Rig>(options, FakeModelOptions(), [&](boost::asio::io_context& loop) {
      store = std::make_unique<ShelfStore>(shelf, loop, static_cast<std::size_t>(options.block_tokens) * sizeof(TokenId), buffers);
      return store.get();
    });
  }
  ~Sharer() {
    rig->model.release();
    rig->scheduler.reset();
  }
  std::int32_t cached(const std::vector<TokenId>& prompt, std::int32_t max_tokens = 3, const std::string& salt = {}) {
    return rig->complete(prompt, max_tokens, salt).finish->usage.cached_tokens;
  }
};

TEST(SharedStore, WhatOneServerComputesAnotherFinds) {
  Shelf shelf;
  const auto prompt = Rig::prompt_of(101, 1);
  Sharer one(shelf, tier_options(200, true));
  Sharer other(shelf, tier_options(200, true));
  EXPECT_EQ(one.cached(prompt), 0);
  EXPECT_TRUE(one.rig->run_until([&] { return one.store->idle(); }));
  EXPECT_EQ(other.cached(prompt), 100);
  EXPECT_EQ(other.cached(prompt, 3, "salt"), 0);
  const std::size_t asked = shelf.asked;
  EXPECT_EQ(other.cached(prompt), 100) << "from RAM";
  EXPECT_EQ(shelf.asked, asked) << "there is nothing to ask";
  one.rig->run_to_end();
  other.rig->run_to_end();
}

TEST(SharedStore, ManyAtOnceAreAllRight) {
  Shelf shelf;
  Sharer one(shelf, tier_options(300, true));
  for (std::int32_t i = 0; i < 6; ++i) one.cached(Rig::prompt_of(60 + i, i % 3));
  one.rig->run_to_end();
  Sharer other(shelf, tier_options(60, true), 8);
  for (std::int32_t i = 0; i < 12; ++i) other.rig->start(Rig::prompt_of(55 + i, i % 4), 5);
  EXPECT_TRUE(other.rig->run_until([&] { return other.rig->take_all(); }));
  for (const auto& client : other.rig->clients) other.rig->expect_right(*client);
  EXPECT_GT(other.rig->scheduler->stats().cache_disk_hit_tokens, 0U);
  other.rig->run_to_end();
}

TEST(SharedStore, AStateIsFoundWhereverTheTurnBeforeHasEnded) {
  for (std::int32_t length = 50; length < 58; ++length) {
    Shelf shelf;
    SchedulerOptions options = tier_options(400, true);
    options.state_blocks = 3;
    options.state_interval = 0;
    if (length % 2 == 0) options.groups.emplace_back();
    auto chat = Rig::prompt_of(length, 1);
    for (std::int32_t turn = 0; turn < 3; ++turn) {
      Sharer server(shelf, options);
      const auto known = static_cast<std::int32_t>(chat.size());
      if (turn > 0) {
        const auto next = Rig::prompt_of(20 * turn, 100 + turn);
        chat.insert(chat.end(), next.begin(), next.end());
      }
      const Client& client = server.rig->complete(chat, 9);
      EXPECT_EQ(client.finish->usage.cached_tokens, turn > 0 ? known - 1 : 0) << length;
      chat.insert(chat.end(), client.tokens.begin(), client.tokens.end());
      server.rig->run_to_end();
    }
    EXPECT_LE(shelf.largest, 1100U) << "however long a prompt is";
  }
}

TEST(SharedStore, WhatItHasLostIsComputed) {
  Shelf shelf;
  const auto prompt = Rig::prompt_of(101, 1);
  Sharer one(shelf, tier_options(200, true));
  one.cached(prompt);
  one.rig->run_to_end();
  for (const bool answers : {true, false}) {
    shelf.answers = answers;
    shelf.loses_all = answers;
    Sharer other(shelf, tier_options(200, true));
    EXPECT_EQ(other.cached(prompt), 0) << answers;
    other.rig->run_to_end();
  }
}

TEST(SharedStore, AQuestionWithoutAnAnswerIsGivenUp) {
  Shelf shelf;
  shelf.is_silent = true;
  SchedulerOptions options = tier_options(200, true);
  options.restore_patience = std::chrono::milliseconds(20);
  Sharer one(shelf, options);
  EXPECT_EQ(one.cached(Rig::prompt_of(50, 1)), 0);
  EXPECT_GT(shelf.asked, 0U);
  one.rig->run_to_end();
}

TEST(SharedStore, OneThatIsCancelledWhileItAsksIsGone) {
  Shelf shelf;
  Sharer one(shelf, tier_options(200, true));
  Client& client = one.rig->submit(Rig::prompt_of(50, 1), 5);
  EXPECT_TRUE(one.rig->scheduler->cancel(client.id));
  EXPECT_EQ(one.cached(Rig::prompt_of(50, 1)), 0);
  one.rig->run_to_end();
}

// Before it goes a server writes what is in its RAM alone: its conversations go on elsewhere.
TEST(SharedStore, AServerThatGoesLeavesWhatItHas) {
  for (const bool has_states : {false, true})
    for (const bool gives_away : {false, true}) {
      Shelf shelf;
      SchedulerOptions options = tier_options(400);
      options.state_blocks = has_states ? 3 : 0;
      options.state_interval = 16;
      auto chat = Rig::prompt_of(90, 1);
      {
        Sharer one(shelf, options, 12);
        for (std::int32_t i = 2; i < 6; ++i) one.cached(Rig::prompt_of(40, i));
        const Client& client = one.rig->complete(chat, 30);
        chat.insert(chat.end(), client.tokens.begin(), client.tokens.end());
        EXPECT_TRUE(shelf.records.empty());
        if (gives_away) one.rig->scheduler->give_away_at_end();
        one.rig->run_to_end();
      }
      chat.push_back(7);
      Sharer other(shelf, options);
      const std::int32_t cached = other.cached(chat);
      EXPECT_EQ(cached, gives_away ? (has_states ? 119 : 116) : 0);
      EXPECT_EQ(other.cached(Rig::prompt_of(40, 3)) > 0, gives_away);
      other.rig->run_to_end();
    }
}

// It is no hurry of those who end a server at once.
TEST(SharedStore, AServerThatIsStoppedLeavesNothing) {
  Shelf shelf;
  Sharer one(shelf, tier_options(400));
  one.cached(Rig::prompt_of(90, 1));
  one.rig->scheduler->give_away_at_end();
  one.rig->scheduler->abort_remaining({ErrorCode::kDraining, "stopped", {}});
  one.rig->run_to_end();
  EXPECT_TRUE(shelf.records.empty());
}

// Its deadline holds for those who wait for an answer, not for what is written.
TEST(SharedStore, AServerEndsInTimeWhateverItsStoreDoes) {
  for (const bool write_through : {true, false}) {
    Shelf shelf;
    shelf.hangs = true;
    Sharer one(shelf, tier_options(400, write_through), 16);
    one.cached(Rig::prompt_of(90, 1));
    one.rig->scheduler->give_away_at_end();
    one.rig->scheduler->begin_drain();
    std::optional<bool> drained;
    const auto drain = [](Scheduler& scheduler, std::optional<bool>& all) -> boost::asio::awaitable<void> {
      all = co_await scheduler.drained(std::chrono::steady_clock::now() + std::chrono::milliseconds(50));
    };
    boost::asio::co_spawn(one.rig->loop, drain(*one.rig->scheduler, drained), boost::asio::detached);
    one.rig->run_to_end();
    EXPECT_EQ(drained, true);
    EXPECT_TRUE(shelf.records.empty());
  }
}

}  // namespace
}  // namespace braid::sched::test
