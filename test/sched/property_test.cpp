// Random clients that submit, read, pause, go and get cancelled, under every kind of pressure, against what each would have got alone.
#include "sched/rig.h"

#include <algorithm>
#include <random>

namespace braid::sched::test {
namespace {

class Storm {
 public:
  explicit Storm(std::uint32_t seed) : random_(seed), rig_(options(), model()) {}

  void run(int operations) {
    for (int i = 0; i < operations && !testing::Test::HasFatalFailure(); ++i) operate();
    finish();
  }

 private:
  int pick(int below) { return static_cast<int>(random_() % static_cast<std::uint32_t>(below)); }

  SchedulerOptions options() {
    SchedulerOptions options = Rig::small_options();
    options.max_batch = 1 + pick(12);
    options.max_batch_tokens = options.max_batch + 1 + pick(60);
    options.max_waiting = 20 + pick(60);
    options.block_tokens = 1 << pick(5);
    options.blocks = (60 + pick(200)) / options.block_tokens + 1;
    options.context_length = 64 + pick(100);
    options.stream_capacity = 1 + pick(20);
    options.prefix_cache = pick(4) > 0;
    if (pick(3) == 0) options.visibility = {1 + pick(60), pick(10)};
    return options;
  }

  FakeModelOptions model() {
    FakeModelOptions model;
    model.vocab = 20 + pick(200);
    model.eos = pick(2) == 0 ? 1 : -1;
    model.prefill_token_seconds = pick(2) == 0 ? 0.0 : 5e-3;
    return model;
  }

  void operate() {
    switch (pick(10)) {
      case 0:
      case 1:
      case 2: submit(); break;
      case 3: leave(); break;
      case 4: cancel(); break;
      case 5: turn_loop(); break;
      case 6: rig_.model.hold(); rig_.model.allow(pick(3)); break;
      case 7: rig_.model.release(); break;
      default: read(); break;
    }
    const EngineStats stats = rig_.scheduler->stats();
    ASSERT_LE(stats.blocks_free, stats.blocks_total);
    ASSERT_LE(stats.blocks_cached, rig_.options.prefix_cache ? stats.blocks_free : 0U);
    ASSERT_LE(static_cast<int>(stats.prefilling + stats.decoding), rig_.options.max_batch);
  }

  void submit() {
    Request request;
    request.prompt = Rig::prompt_of(1 + pick(40), pick(2) == 0 ? pick(3) : pick(1000));  // half of them begin like others
    if (pick(8) == 0) request.cache_salt = "salt";
    request.priority = pick(5) - 2;
    request.stop.max_tokens = 1 + pick(40);
    request.stop.min_tokens = pick(3);
    request.id = "storm-" + std::to_string(next_id_++);
    auto client = std::make_unique<Client>();
    client->id = request.id;
    client->prompt = request.prompt;
    client->stop = request.stop;
    const auto positions = std::int64_t{rig_.options.blocks} * rig_.options.block_tokens;
    const auto length = static_cast<std::int64_t>(request.prompt.size());
    auto ticket = rig_.scheduler->submit(std::move(request));
    if (!ticket) {
      const bool too_large = length > positions || length >= rig_.options.context_length;
      ASSERT_TRUE(too_large || ticket.error().code == ErrorCode::kOverloaded) << ticket.error().message;
      return;
    }
    const auto room = std::min<std::int64_t>(rig_.options.context_length - length, positions - length + 1);
    client->stop.max_tokens = static_cast<std::int32_t>(std::min<std::int64_t>(client->stop.max_tokens, room));
    client->ticket = std::move(*ticket);
    clients_.push_back(std::move(client));
  }

  void leave() {
    if (clients_.empty()) return;
    const auto gone = clients_.begin() + pick(static_cast<int>(clients_.size()));
    check_prefix(**gone);
    clients_.erase(gone);
  }

  void cancel() {
    if (clients_.empty()) return;
    Client& client = *clients_[static_cast<std::size_t>(pick(static_cast<int>(clients_.size())))];
    const bool known = rig_.scheduler->find(client.id).has_value();
    ASSERT_EQ(rig_.scheduler->cancel(client.id), known);
  }

  void read() {
    for (int i = 0; i < 4 && !clients_.empty(); ++i)
      clients_[static_cast<std::size_t>(pick(static_cast<int>(clients_.size())))]->take();
    turn_loop();
  }

  void turn_loop() {
    rig_.loop.restart();
    for (int i = pick(8); i > 0; --i) rig_.loop.poll_one();
  }

  // Everybody reads to the end; nothing may be left over.
  void finish() {
    rig_.model.release();
    ASSERT_TRUE(rig_.run_until([&] {
      bool all = true;
      for (const auto& client : clients_) all = (client->take(), client->finished()) && all;
      return all;
    })) << "a request is stuck";
    for (const auto& client : clients_) check_end(*client);
    rig_.run_to_end();
  }

  void check_prefix(const Client& client) {
    const auto expected = rig_.model.expected(client.prompt, client.stop);
    ASSERT_LE(client.tokens.size(), expected.size());
    ASSERT_TRUE(std::equal(client.tokens.begin(), client.tokens.end(), expected.begin()));
  }

  void check_end(const Client& client) {
    check_prefix(client);
    ASSERT_NE(client.finish->reason, FinishReason::kError);
    if (client.finish->reason != FinishReason::kCancelled) rig_.expect_right(client);
  }

  std::mt19937 random_;
  Rig rig_;
  std::vector<std::unique_ptr<Client>> clients_;
  int next_id_ = 0;
};

class Property : public testing::TestWithParam<std::uint32_t> {};

TEST_P(Property, RandomOperationsMatchSoloAnswers) { Storm(GetParam()).run(5000); }

INSTANTIATE_TEST_SUITE_P(Seeds, Property, testing::Range(0U, 24U));

}  // namespace
}  // namespace braid::sched::test
