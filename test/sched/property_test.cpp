// Random clients that submit, read, pause, go and get cancelled, under every kind of pressure, with a disk that loses records and steps
// that throw once or for somebody's tokens, against what each would have got alone.
#include "sched/random_rig.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

namespace braid::sched::test {
namespace {

class Storm : RandomRig {
 public:
  explicit Storm(std::uint32_t seed)
      : RandomRig(seed, [](RandomRig& random, SchedulerOptions& options) { options.kv_verify = random.pick(6) == 0; }) {}

  void run(int operations) {
    for (int i = 0; i < operations && !testing::Test::HasFatalFailure(); ++i) operate();
    finish();
  }

 private:
  static constexpr std::size_t kMostClients = 100;  // more than may wait

  void operate() {
    switch (pick(256)) {
      case 0:
        return lose();
      case 1:
        return fail();
      case 2:
        return poison();
      default:
        break;
    }
    switch (pick(10)) {
      case 0:
      case 1:
      case 2:
        submit();
        break;
      case 3:
        leave();
        break;
      case 4:
        cancel();
        break;
      case 5:
        turn_loop();
        break;
      case 6:
        rig().model.hold();
        rig().model.allow(pick(3));
        is_held_ = true;
        break;
      case 7:
        rig().model.release();
        is_held_ = false;
        break;
      default:
        read();
        break;
    }
    const EngineStats stats = rig().scheduler->stats();
    ASSERT_LE(stats.blocks_free, stats.blocks_total);
    ASSERT_LE(stats.blocks_cached, rig().options.prefix_cache ? stats.blocks_free : 0U);
    ASSERT_LE(static_cast<int>(stats.prefilling + stats.decoding), rig().options.max_batch);
  }

  void submit() {
    if (clients_.size() == kMostClients) return read();
    GenerationRequest request;
    request.prompt = Rig::prompt_of(1 + pick(40), pick(2) == 0 ? pick(3) : pick(1000));  // half of them begin like others
    if (pick(8) == 0) request.cache_salt = "salt";
    apply(random_tint(static_cast<std::int32_t>(request.prompt.size())), request);
    request.priority = pick(5) - 2;
    if (pick(4) == 0) request.speculation.method = DraftMethod::kOff;
    request.speculation.max_tokens = pick(4);
    request.client = pick(2) == 0 ? "one" : "other";
    request.stop.max_tokens = pick(41);
    request.stop.min_tokens = pick(3);
    if (pick(6) == 0) {
      request.prompt_logprobs = pick(3);
    } else if (pick(6) == 0) {
      request.pooling = static_cast<Pooling>(1 + pick(3));
      request.stop.max_tokens = 0;
    }
    const Pooling pooling = request.pooling;
    const bool is_scored = request.prompt_logprobs >= 0;
    request.id = "storm-" + std::to_string(next_id_++);
    auto client = std::make_unique<Client>();
    client->id = request.id;
    client->prompt = request.prompt;
    client->stop = request.stop;
    client->tint = tint_of(request);
    const auto wanted = std::min(request.stop.max_tokens, 1);
    const auto positions = most_positions();
    const auto length = static_cast<std::int64_t>(request.prompt.size());
    auto ticket = rig().scheduler->submit(std::move(request));
    if (!ticket) {
      const bool too_large = length > positions || length + wanted > rig().options.context_length;
      ASSERT_TRUE(too_large || ticket.error().code == ErrorCode::kOverloaded) << ticket.error().message;
      return;
    }
    const auto room = std::min<std::int64_t>(rig().options.context_length - length, positions - length + 1);
    client->stop.max_tokens = static_cast<std::int32_t>(std::min<std::int64_t>(client->stop.max_tokens, room));
    client->ticket = std::move(*ticket);
    if (is_scored) scored_.insert(client->id);
    if (pooling != Pooling::kNone) pooled_.emplace(client->id, pooling);
    clients_.push_back(std::move(client));
  }

  // A third has an image, some an adapter.
  Tint random_tint(std::int32_t length) {
    Tint tint;
    if (pick(6) == 0) tint.adapter = static_cast<std::uint16_t>(1 + pick(2));
    if (pick(3) > 0) return tint;
    tint.image = static_cast<std::uint16_t>(1 + pick(2));
    tint.first = static_cast<std::uint16_t>(pick(length));
    tint.count = static_cast<std::uint16_t>(1 + pick(length - tint.first));
    return tint;
  }

  // Of one sequence: what the pool holds, or all where what a window shows fits.
  std::int64_t most_positions() {
    const SchedulerOptions& options = rig().options;
    std::int64_t places = 0;
    while (places < 10'000 && blocks_at_once(options, places + 1) <= options.blocks) ++places;
    return places * options.block_tokens;
  }

  // A file of the disk tier is removed, cut, or has a bit flipped; or transfers begin or cease to fail.
  void lose() {
    if (server_ == nullptr) return;
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      if (entry.path().extension() == ".kv") files.push_back(entry.path());
    const int how = pick(4);
    if (how == 3 || files.empty()) {
      mood_->fail_one_in = pick(2) == 0 ? 0 : 1 + pick(20);
      return;
    }
    const auto& file = files[static_cast<std::size_t>(pick(static_cast<int>(files.size())))];
    std::error_code gone;  // a file may be dropped meanwhile
    const std::uintmax_t bytes_there = std::filesystem::file_size(file, gone);
    if (gone) return;
    const auto size = static_cast<int>(bytes_there);
    if (how == 0 || size == 0) {
      std::filesystem::remove(file, gone);
    } else if (how == 1) {
      std::filesystem::resize_file(file, static_cast<std::uintmax_t>(pick(size)), gone);
    } else {
      std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
      const int at = pick(size);
      bytes.seekg(at);
      const int byte = bytes.get();
      bytes.seekp(at);
      bytes.put(static_cast<char>(byte ^ (1 << pick(8))));
    }
  }

  void fail() {
    rig().model.fail_next("out of luck");
    has_failed_ = true;
  }

  // Whoever sees this token fails, until it is healed.
  void poison() {
    if (pick(2) == 0) return rig().model.heal();
    rig().model.poison(pick(200), pick(3) == 0);
    has_failed_ = true;
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
    const bool known = rig().scheduler->find(client.id).has_value();
    ASSERT_EQ(rig().scheduler->cancel(client.id), known);
  }

  void read() {
    for (int i = 0; i < 4 && !clients_.empty(); ++i) clients_[static_cast<std::size_t>(pick(static_cast<int>(clients_.size())))]->take();
    turn_loop();
  }

  void turn_loop() {
    rig().loop.restart();
    for (int i = pick(8); i > 0; --i) is_held_ ? rig().loop.poll_one() : rig().loop.run_one_for(std::chrono::microseconds(100));
  }

  // Everybody reads to the end; nothing may be left over.
  void finish() {
    rig().model.release();
    ASSERT_TRUE(rig().run_until([&] {
      bool all = true;
      for (const auto& client : clients_) all = (client->take(), client->finished()) && all;
      return all;
    })) << "a request is stuck";
    for (const auto& client : clients_) check_end(*client);
    rig().run_to_end();
    expect_no_buffer_leaked();
  }

  void check_prefix(const Client& client) {
    std::vector<TokenId> expected;
    if (client.stop.max_tokens > 0) expected = rig().model.expected(client.prompt, client.stop, client.tint);
    ASSERT_LE(client.tokens.size(), expected.size());
    ASSERT_TRUE(std::equal(client.tokens.begin(), client.tokens.end(), expected.begin()));
    for (std::size_t i = 0; i < client.prompt_tokens.size(); ++i) {
      ASSERT_EQ(client.prompt_tokens[i].id, client.prompt.at(i));
      if (i > 0) {
        ASSERT_EQ(client.prompt_tokens[i].logprob, -static_cast<float>(i));
      }
    }
  }

  void check_end(const Client& client) {
    check_prefix(client);
    ASSERT_TRUE(has_failed_ || client.finish->reason != FinishReason::kError);
    if (client.finish->reason != FinishReason::kLength && client.finish->reason != FinishReason::kStop) return;
    if (client.stop.max_tokens > 0) rig().expect_right(client);
    if (const auto pooled = pooled_.find(client.id); pooled != pooled_.end()) {
      ASSERT_EQ(client.vector, FakeModel::expected_vector(client.prompt, pooled->second, client.tint));
    }
    ASSERT_EQ(client.prompt_tokens.size(), scored_.contains(client.id) ? client.prompt.size() : 0U);
  }

  bool is_held_ = false;
  bool has_failed_ = false;
  std::vector<std::unique_ptr<Client>> clients_;
  std::set<std::string> scored_;           // ids of those who want their prompt's log-probabilities
  std::map<std::string, Pooling> pooled_;  // of those who want a vector
  int next_id_ = 0;
};

class Property : public testing::TestWithParam<std::uint32_t> {};

// A million operations in all; a tenth of them where each costs many times as much.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kOperations = 2'500;
#else
constexpr int kOperations = 25'000;
#endif

TEST_P(Property, RandomOperationsMatchSoloAnswers) { Storm(GetParam()).run(kOperations); }

INSTANTIATE_TEST_SUITE_P(Seeds, Property, testing::Range(0U, 40U));

}  // namespace
}  // namespace braid::sched::test
