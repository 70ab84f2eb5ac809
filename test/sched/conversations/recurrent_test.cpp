// Chats with a model that has recurrent layers: whether a turn is computed from its beginning or from a checkpoint of the state, alone or
// in a crowd that is preempted, its answer is the same bits, and a next turn computes its new tokens only.
#include "files/hf_folder.h"
#include "kernels/select.h"
#include "model/families/families.h"
#include "model/language_model.h"
#include "sched/scheduler.h"

#include <bit>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace braid::sched::test {
namespace {

constexpr std::int32_t kLayersContext = 256;

struct ChatTurn {
  std::vector<TokenId> prompt;
  std::vector<TokenId> tokens;
  std::vector<std::uint32_t> logprobs;  // their bits
  std::int32_t cached = 0;
};

class RecurrentChats : public testing::TestWithParam<const char*> {
 protected:
  RecurrentChats() {
    const auto folder = files::HfFolder::open(std::string(BRAID_SOURCE_DIR "/test/model/reference/folders/") + GetParam()).value();
    const auto file = files::GgufFile::from_contents(model::read_folder(folder).value());
    model::LoadOptions load;
    load.threads = 2;
    load.block_tokens = 8;
    load.max_batch = 16;
    model_ = model::LanguageModel::load(file, kernels::best_kernel_table(), load).value();
    model_->allocate_kv(kMostBlocks).value();
  }

  SchedulerOptions options(bool prefix_cache, std::int32_t blocks) const {
    SchedulerOptions options;
    options.max_batch = 16;
    options.max_batch_tokens = 64;
    options.context_length = kLayersContext;
    options.block_tokens = 8;
    options.groups = model_->kv_groups().visibilities();
    options.state_blocks = model_->kv_groups().states.blocks();
    options.state_interval = 32;
    options.blocks = blocks;
    options.prefix_cache = prefix_cache;
    return options;
  }

  // Four turns, each of the one before, its answer and some new tokens.
  static boost::asio::awaitable<void> chat(Scheduler& scheduler, std::uint32_t seed, std::vector<ChatTurn>& turns, int& left) {
    std::mt19937 random(seed);
    std::vector<TokenId> prompt;
    for (int turn = 0; turn < 4; ++turn) {
      for (auto i = 5 + random() % 20; i > 0; --i) prompt.push_back(static_cast<TokenId>(3 + random() % 110));
      GenerationRequest request;
      request.prompt = prompt;
      request.sampling.temperature = 0.0F;
      request.sampling.top_logprobs = 0;
      request.stop.max_tokens = 10;
      request.stop.ignore_eos = true;
      const Ticket ticket = scheduler.submit(std::move(request)).value();
      ChatTurn answer{prompt, {}, {}, 0};
      for (bool is_open = true; is_open;) {
        const std::optional<TokenEvent> event = co_await ticket->next();
        if (const auto* finish = std::get_if<Finish>(&*event)) {
          EXPECT_FALSE(finish->error.has_value());
          answer.cached = finish->usage.cached_tokens;
          is_open = false;
        } else {
          answer.tokens.push_back(std::get<Token>(*event).id);
          answer.logprobs.push_back(std::bit_cast<std::uint32_t>(std::get<Token>(*event).logprob));
        }
      }
      prompt.insert(prompt.end(), answer.tokens.begin(), answer.tokens.end());
      turns.push_back(std::move(answer));
    }
    if (--left == 0) scheduler.begin_drain();
  }

  std::vector<std::vector<ChatTurn>> hold(int chats, const SchedulerOptions& options) {
    boost::asio::io_context loop;
    Scheduler scheduler(loop, *model_, options);
    std::vector<std::vector<ChatTurn>> held(static_cast<std::size_t>(chats));
    int left = chats;
    for (int i = 0; i < chats; ++i)
      boost::asio::co_spawn(loop, chat(scheduler, static_cast<std::uint32_t>(i), held[static_cast<std::size_t>(i)], left),
                            boost::asio::detached);
    loop.run();
    preemptions_ = scheduler.stats().preemptions;
    return held;
  }

  static void expect_same(const std::vector<std::vector<ChatTurn>>& one, const std::vector<std::vector<ChatTurn>>& other) {
    for (std::size_t i = 0; i < one.size(); ++i)
      for (std::size_t turn = 0; turn < 4; ++turn) {
        EXPECT_EQ(one[i].at(turn).tokens, other[i].at(turn).tokens) << i << ", turn " << turn;
        EXPECT_EQ(one[i].at(turn).logprobs, other[i].at(turn).logprobs) << i << ", turn " << turn;
      }
  }

  static constexpr std::int32_t kMostBlocks = 8192;
  std::unique_ptr<model::LanguageModel> model_;
  std::uint64_t preemptions_ = 0;
};

TEST_P(RecurrentChats, AreTheSameBitsColdAndWarmAndInACrowd) {
  const auto cold = hold(12, options(false, kMostBlocks));
  const auto warm = hold(12, options(true, kMostBlocks));
  expect_same(cold, warm);
  for (const auto& turns : warm)
    for (std::size_t turn = 1; turn < turns.size(); ++turn)
      EXPECT_EQ(turns[turn].cached, static_cast<std::int32_t>(turns[turn - 1].prompt.size()) + 9) << "all but the last token of the answer";
  const std::int32_t per_place = model_->kv_groups().count();
  const auto crowded = hold(12, options(true, 24 * per_place + 6 * model_->kv_groups().states.blocks()));
  expect_same(cold, crowded);
  // Where a state is larger than a chat's keys and values, those fit beside the states that were let in.
  constexpr std::int32_t kChatBlocks = 10;
  if (model_->kv_groups().states.blocks() < kChatBlocks) {
    EXPECT_GT(preemptions_, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, RecurrentChats, testing::Values("lfm2", "granite4"),
                         [](const auto& suite) { return std::string(suite.param); });

}  // namespace
}  // namespace braid::sched::test
