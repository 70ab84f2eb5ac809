// Random readers that wait, pause, end early and go away, in coroutines as a server's sessions, while sequences are preempted, restored,
// stalled, dropped and fail: each is woken when there is something to read, gets what it would have got alone, and is counted once.
#include "sched/random_rig.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace braid::sched::test {
namespace {

struct Reader {
  Client client;
  Signal goes_on;
  bool is_paused = false;
  bool waits = false;       // for the engine
  bool is_gone = false;     // has left before its end
  bool ran = false;         // then: until then
  bool has_enough = false;  // and why
  std::int32_t enough = 0;  // tokens after which it has its whole answer, as at a stop string; 0: never

  bool has_ended() const { return is_gone || client.finished(); }
  void go(const Scheduler& scheduler) {
    is_gone = true;
    ran = scheduler.find(client.id).has_value();
  }
};

boost::asio::awaitable<void> read(std::shared_ptr<Reader> reader, const Scheduler& scheduler) {
  Client& client = reader->client;
  while (!reader->has_ended()) {
    if (reader->is_paused) {
      co_await reader->goes_on.wait();
      continue;
    }
    std::optional<TokenEvent> event = client.ticket->try_next();
    if (!event) {
      reader->waits = true;
      co_await client.ticket->arrived().wait();
      reader->waits = false;
      continue;
    }
    client.record(*event);
    if (!client.finished() && static_cast<std::int32_t>(client.tokens.size()) == reader->enough) {
      reader->go(scheduler);
      reader->has_enough = true;
      client.ticket->complete();
    }
  }
}

// What the engine is to have counted.
struct Ledger {
  std::uint64_t submitted = 0;
  std::uint64_t refused = 0;
  std::uint64_t finished = 0;
  std::uint64_t cancelled = 0;
};

class ReadersStorm : RandomRig {
 public:
  explicit ReadersStorm(std::uint32_t seed) : RandomRig(seed + 1000, drop_stalled) {}

  void run(int operations) {
    for (int i = 0; i < operations && !testing::Test::HasFatalFailure(); ++i) {
      operate();
      if (i % 16 == 0) look();
    }
    if (!testing::Test::HasFatalFailure()) end();
  }

 private:
  static constexpr std::size_t kMostReaders = 90;

  static void drop_stalled(RandomRig& random, SchedulerOptions& options) {
    if (random.pick(3) == 0) options.stall_drop = options.stall_park = std::chrono::milliseconds(random.pick(20));
  }

  void operate() {
    switch (pick(400)) {
      case 0:
        rig().model.fail_next("out of luck");
        return fails();
      case 1:
        rig().model.poison(pick(200), pick(3) == 0);
        return fails();
      case 2:
        rig().model.choke(pick(200));
        return fails();
      case 3:
        rig().model.choke(-1);
        break;
      case 4:
        rig().model.heal();
        break;
      case 5:
        mood_->fail_one_in = pick(2) == 0 ? 0 : 1 + pick(20);
        break;
      case 6:
        mood_->read_milliseconds = pick(2) == 0 ? 0 : 1 + pick(3);
        break;
      default:
        break;
    }
    switch (pick(16)) {
      case 0:
      case 1:
      case 2:
        return submit();
      case 3:
        return leave();
      case 4:
        return cancel();
      case 5:
        return pause();
      case 6:
      case 7:
        return go_on();
      case 8:
        return wake();
      case 9:
        rig().model.hold();
        return rig().model.allow(pick(3));
      case 10:
      case 11:
        return rig().model.release();
      default:
        return turn_loop();
    }
  }

  void fails() { has_failed_ = true; }

  // Lengths where something changes, and others.
  std::int32_t prompt_length() {
    const SchedulerOptions& options = rig().options;
    const std::int32_t block = options.block_tokens;
    switch (pick(8)) {
      case 0:
        return block * (1 + pick(4));
      case 1:
        return block * (1 + pick(4)) + 1;
      case 2:
        return options.context_length - pick(3);
      case 3:
        return options.blocks * block + 1 - pick(3);
      default:
        return 1 + pick(40);
    }
  }

  std::int32_t most_tokens() {
    switch (pick(6)) {
      case 0:
        return 0;
      case 1:
        return 1;
      case 2:
        return 1000;
      default:
        return 1 + pick(60);
    }
  }

  // One to four choices of the same prompt.
  void submit() {
    if (readers_.size() >= kMostReaders) return turn_loop();
    GenerationRequest request;
    request.prompt = Rig::prompt_of(prompt_length(), pick(2) == 0 ? pick(3) : pick(1000));
    if (pick(8) == 0) request.cache_salt = "salt";
    request.priority = pick(3) == 0 ? pick(201) - 100 : pick(3) - 1;
    request.stop.max_tokens = most_tokens();
    request.stop.min_tokens = pick(3);
    if (pick(4) == 0) request.stop.stop_token_ids = {pick(100), pick(100)};
    if (pick(8) == 0) request.prompt_logprobs = pick(3);
    const int choices = pick(3) == 0 ? 1 + pick(4) : 1;
    for (int choice = 0; choice < choices; ++choice) {
      request.id = "reader-" + std::to_string(next_id_++);
      request.sampling.choice = static_cast<std::uint32_t>(choice);
      if (!submit_one(request)) return;
    }
  }

  bool submit_one(const GenerationRequest& request) {
    auto ticket = rig().scheduler->submit(request);
    if (!ticket) {
      EXPECT_TRUE(!may_run(request) || ticket.error().code == ErrorCode::kOverloaded) << ticket.error().message;
      if (ticket.error().code == ErrorCode::kOverloaded) ++ledger_.refused;
      return false;
    }
    EXPECT_TRUE(may_run(request));
    ++ledger_.submitted;
    auto reader = std::make_shared<Reader>();
    reader->client.id = request.id;
    reader->client.prompt = request.prompt;
    reader->client.stop = request.stop;
    reader->client.stop.max_tokens = room(request);
    reader->client.ticket = std::move(*ticket);
    is_scored_[request.id] = request.prompt_logprobs >= 0;
    if (pick(4) == 0) reader->enough = 1 + pick(20);
    reader->is_paused = pick(8) == 0;
    readers_.push_back(reader);
    boost::asio::co_spawn(rig().loop, read(reader, *rig().scheduler), boost::asio::detached);
    return true;
  }

  std::int64_t most_positions() {
    const SchedulerOptions& options = rig().options;
    std::int64_t places = 0;
    while (places < 10'000 && blocks_at_once(options, places + 1) <= options.blocks) ++places;
    return places * options.block_tokens;
  }

  bool may_run(const GenerationRequest& request) {
    const auto length = static_cast<std::int64_t>(request.prompt.size());
    return length <= most_positions() && length + std::min(request.stop.max_tokens, 1) <= rig().options.context_length;
  }

  std::int32_t room(const GenerationRequest& request) {
    const auto length = static_cast<std::int64_t>(request.prompt.size());
    const auto room = std::min<std::int64_t>(rig().options.context_length - length, most_positions() - length + 1);
    return static_cast<std::int32_t>(std::min<std::int64_t>(request.stop.max_tokens, room));
  }

  std::shared_ptr<Reader> any() {
    return readers_.empty() ? nullptr : readers_[static_cast<std::size_t>(pick(static_cast<int>(readers_.size())))];
  }

  // In each of the ways that there are; the waiting coroutine is unwound, or goes on and finds its reader gone.
  void leave() {
    const auto reader = any();
    if (reader == nullptr || reader->has_ended()) return;
    reader->go(*rig().scheduler);
    switch (pick(3)) {
      case 0:
        reader->client.ticket.reset();
        break;
      case 1:
        reader->client.ticket->cancel();
        break;
      default:
        reader->client.ticket->cancel();
        turn_loop();
        reader->client.ticket.reset();
    }
    reader->goes_on.notify();
  }

  void cancel() {
    const auto reader = any();
    if (reader == nullptr) return;
    const bool known = rig().scheduler->find(reader->client.id).has_value();
    EXPECT_EQ(rig().scheduler->cancel(reader->client.id), known);
  }

  void pause() {
    if (const auto reader = any()) reader->is_paused = true;
  }

  void go_on() {
    for (int i = 0; i < 3; ++i)
      if (const auto reader = any()) go_on(*reader);
  }

  static void go_on(Reader& reader) {
    reader.is_paused = false;
    reader.goes_on.notify();
  }

  void wake() {
    const auto reader = any();
    if (reader != nullptr && !reader->has_ended()) reader->client.ticket->wake();
  }

  void turn_loop() {
    rig().loop.restart();
    for (int i = pick(12); i > 0; --i) rig().loop.run_one_for(std::chrono::microseconds(50));
    take_leave();
  }

  // Of those who have ended.
  void take_leave() {
    std::erase_if(readers_, [this](const std::shared_ptr<Reader>& reader) {
      if (!reader->has_ended()) return false;
      check(*reader);
      return true;
    });
  }

  // When the loop has done all that it has, nobody waits who has something to read.
  void look() {
    rig().loop.restart();
    rig().loop.poll();
    for (const auto& reader : readers_) {
      if (!reader->waits || reader->has_ended()) continue;
      auto& stream = static_cast<SequenceTicket&>(*reader->client.ticket).stream();
      ASSERT_EQ(stream.size(), 0) << reader->client.id << " sleeps beside its tokens";
      ASSERT_TRUE(rig().scheduler->find(reader->client.id).has_value()) << reader->client.id << " waits for nobody";
    }
    const EngineStats stats = rig().scheduler->stats();
    ASSERT_EQ(stats.submitted, ledger_.submitted);
    ASSERT_EQ(stats.refused, ledger_.refused);
    ASSERT_EQ(stats.waiting, stats.waiting_better + stats.waiting_normal + stats.waiting_worse);
    ASSERT_LE(stats.preempted, stats.waiting);
    ASSERT_LE(stats.waiting - stats.preempted, static_cast<std::uint32_t>(rig().options.max_waiting)) << "of those who have never run";
    ASSERT_LE(static_cast<int>(stats.prefilling + stats.decoding), rig().options.max_batch);
    ASSERT_LE(stats.blocks_free, stats.blocks_total);
    ASSERT_LE(stats.blocks_cached, stats.blocks_free);
    ASSERT_LE(stats.finished + stats.cancelled, stats.submitted);
    const std::uint64_t live = stats.submitted - stats.finished - stats.cancelled;
    ASSERT_LE(stats.waiting + stats.prefilling + stats.decoding + stats.stalled + stats.parked, live);
    take_leave();
  }

  void check(const Reader& reader) {
    const Client& client = reader.client;
    std::vector<TokenId> expected;
    if (client.stop.max_tokens > 0) expected = rig().model.expected(client.prompt, client.stop, client.tint);
    ASSERT_LE(client.tokens.size(), expected.size());
    ASSERT_TRUE(std::equal(client.tokens.begin(), client.tokens.end(), expected.begin())) << client.id;
    if (reader.is_gone) {
      ++(!reader.ran ? unseen_ : reader.has_enough ? ledger_.finished : ledger_.cancelled);
      return;
    }
    const Finish& finish = *client.finish;
    ++(finish.reason == FinishReason::kCancelled ? ledger_.cancelled : ledger_.finished);
    ASSERT_EQ(finish.usage.completion_tokens, static_cast<std::int32_t>(client.tokens.size())) << client.id;
    ASSERT_EQ(finish.usage.prompt_tokens, static_cast<std::int32_t>(client.prompt.size()));
    ASSERT_LT(finish.usage.cached_tokens, finish.usage.prompt_tokens);
    ASSERT_GE(finish.usage.cached_tokens, 0);
    ASSERT_TRUE(has_failed_ || finish.reason != FinishReason::kError) << finish.error->message;
    if (finish.reason != FinishReason::kLength && finish.reason != FinishReason::kStop) return;
    ASSERT_EQ(client.tokens.size(), expected.size());
    ASSERT_EQ(client.prompt_tokens.size(), is_scored_[client.id] ? client.prompt.size() : 0U);
  }

  bool all_have_ended() {
    for (const auto& reader : readers_) go_on(*reader);
    return std::ranges::all_of(readers_, [](const auto& reader) { return reader->has_ended(); });
  }

  // Everybody reads on; or the server drains meanwhile, to the end or until it is to stop at once.
  void end() {
    rig().model.release();
    const int way = pick(3);
    std::future<bool> drained;
    if (way > 0) {
      rig().scheduler->begin_drain();
      GenerationRequest late;
      late.prompt = {1};
      late.stop.max_tokens = 1;
      ASSERT_FALSE(rig().scheduler->submit(late));
      const auto patience = way == 1 ? std::chrono::milliseconds(100'000) : std::chrono::milliseconds(pick(5));
      drained =
          boost::asio::co_spawn(rig().loop, rig().scheduler->drained(std::chrono::steady_clock::now() + patience), boost::asio::use_future);
    }
    if (way == 2) {
      ASSERT_TRUE(rig().run_until([&] { return drained.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }));
      drained.get();
      rig().scheduler->abort_remaining({ErrorCode::kDraining, "over", {}});
    }
    ASSERT_TRUE(rig().run_until([&] { return all_have_ended(); })) << "a request is stuck";
    take_leave();
    rig().run_to_end();
    if (way == 1) {
      EXPECT_TRUE(drained.get());
    }
    balance();
  }

  void balance() {
    const EngineStats stats = rig().scheduler->stats();
    EXPECT_EQ(stats.submitted, ledger_.submitted);
    EXPECT_EQ(stats.finished + stats.cancelled, stats.submitted);
    EXPECT_EQ(ledger_.finished + ledger_.cancelled + unseen_, ledger_.submitted);
    EXPECT_GE(stats.finished, ledger_.finished);
    EXPECT_GE(stats.cancelled, ledger_.cancelled);
    EXPECT_EQ(stats.stalled + stats.parked + stats.preempted + stats.decoding + stats.prefilling + stats.waiting, 0U);
    EXPECT_EQ(stats.kv_unused_slots, 0U);
    const auto& steps = stats.cancel_to_free_steps;
    EXPECT_EQ(steps[0] + steps[1] + steps[2], stats.cancelled);
    EXPECT_EQ(steps[3], 0U) << "cancelled ones held their blocks for too long";
    std::uint64_t waited = 0;
    for (const std::uint64_t count : stats.queue_wait.counts) waited += count;
    EXPECT_LE(waited, stats.submitted);
    EXPECT_LE(stats.failed_rows, stats.finished);
    EXPECT_LE(stats.parks_total, stats.stalls_total);
    expect_no_buffer_leaked();
  }

  std::vector<std::shared_ptr<Reader>> readers_;
  std::map<std::string, bool> is_scored_;
  bool has_failed_ = false;
  Ledger ledger_;
  std::uint64_t unseen_ = 0;  // who left when their end lay in their streams
  int next_id_ = 0;
};

class Readers : public testing::TestWithParam<std::uint32_t> {};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kReaderOperations = 1'000;
#else
constexpr int kReaderOperations = 3'000;
#endif

TEST_P(Readers, AreWokenServedAndCounted) { ReadersStorm(GetParam()).run(kReaderOperations); }

INSTANTIATE_TEST_SUITE_P(Seeds, Readers, testing::Range(0U, 24U));

}  // namespace
}  // namespace braid::sched::test
