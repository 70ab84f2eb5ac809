// Chats of several turns with a random model of test/model/reference/folders, whose answers are compared bit for bit.
#pragma once

#include "files/hf_folder.h"
#include "kernels/select.h"
#include "model/families/families.h"
#include "model/language_model.h"
#include "sched/scheduler.h"
#include "store/block_store.h"

#include <algorithm>
#include <bit>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace braid::sched::test {

struct ChatTurn {
  std::vector<TokenId> prompt;
  std::vector<TokenId> tokens;
  std::vector<std::uint32_t> logprobs;  // their bits
  std::int32_t cached = 0;
  std::int32_t cached_again = 0;  // where it was asked for twice
};

// What clients do besides.
struct ChatHabits {
  bool edits = false;       // each turn's new tokens once they are answered, and goes on from the other answer
  bool asks_again = false;  // for another answer to each turn
  std::int32_t lets_go_after =
      10;  // of the answer's ten tokens so many, as where a stop string ends it while steps are out; goes on from there
  const std::vector<std::vector<ChatTurn>>* guesses = nullptr;  // answers that are guessed to come again, but for a token of each
};

inline constexpr int kTurns = 4;

// A model whose steps have taken this long or that, so that the scheduler cuts prompts into slices of all sizes.
class RandomPace final : public step::StepExecutor {
 public:
  RandomPace(step::StepExecutor& model, std::uint32_t seed) : model_(model), random_(seed) {}

  void execute(const step::StepPlan& plan, step::StepResult& result) override {
    model_.execute(plan, result);
    std::int32_t tokens = 0;
    for (const step::StepRow& row : plan.rows) {
      tokens += row.count;
      if (row.input == step::RowInput::kTokens) slices_.insert(row.count);
    }
    if (left_-- == 0) {
      left_ = static_cast<int>(random_() % 8);
      tokens_per_ms_ = 1.0 + static_cast<double>(random_() % 60);
    }
    result.seconds = 1e-3 * std::max(tokens, 1) / tokens_per_ms_;
  }

  // The lengths of all slices that there were. When no step is out.
  const std::set<std::int32_t>& slices() const { return slices_; }

 private:
  step::StepExecutor& model_;
  std::mt19937 random_;
  int left_ = 0;
  double tokens_per_ms_ = 1.0;
  std::set<std::int32_t> slices_;
};

class Chats {
 public:
  static constexpr std::int32_t kBlockTokens = 8;
  static constexpr std::int32_t kMostBlocks = 8192;
  static constexpr std::int32_t kMostDrafts = 5;

  explicit Chats(const std::string& folder, model::LoadOptions load = {}) {
    const auto opened = files::HfFolder::open(BRAID_SOURCE_DIR "/test/model/reference/folders/" + folder).value();
    const auto file = files::GgufFile::from_contents(model::read_folder(opened).value());
    load.threads = 2;
    load.block_tokens = kBlockTokens;
    load.max_batch = 16;
    load.state_drafts = 16 * kMostDrafts;
    model_ = model::LanguageModel::load(file, kernels::best_kernel_table(), load).value();
    model_->allocate_kv(kMostBlocks).value();
  }

  model::LanguageModel& model() { return *model_; }

  SchedulerOptions options(bool prefix_cache, std::int32_t blocks) const {
    SchedulerOptions options;
    options.max_batch = 16;
    options.max_batch_tokens = 64;
    options.context_length = 256;
    options.block_tokens = kBlockTokens;
    options.groups = model_->kv_groups().visibilities();
    options.block_use = model_->kv_groups().block_use();
    options.state_blocks = model_->kv_groups().states.blocks();
    options.state_interval = 32;
    options.blocks = blocks;
    options.prefix_cache = prefix_cache;
    if (prefix_cache) options.prefill_slice_ms = 1;  // RandomPace
    return options;
  }

  std::vector<std::vector<ChatTurn>> hold(int chats, const SchedulerOptions& options) {
    boost::asio::io_context loop;
    return hold(chats, options, loop, nullptr);
  }

  // All of them at once; with a prefix cache their prompts are cut at random. `stats` is then what the scheduler counted, and `slices` are
  // the lengths that there were.
  std::vector<std::vector<ChatTurn>> hold(int chats, const SchedulerOptions& options, boost::asio::io_context& loop,
                                          store::BlockStore* store) {
    RandomPace paced(*model_, next_seed());
    Scheduler scheduler(loop, options.prefix_cache ? static_cast<step::StepExecutor&>(paced) : *model_, options, store);
    std::vector<std::vector<ChatTurn>> held(static_cast<std::size_t>(chats));
    int left = chats;
    for (int i = 0; i < chats; ++i)
      boost::asio::co_spawn(loop, chat(scheduler, habits, static_cast<std::uint32_t>(i), held[static_cast<std::size_t>(i)], left),
                            boost::asio::detached);
    loop.run();
    stats = scheduler.stats();
    slices = paced.slices();
    return held;
  }

  // As the choices of one request.
  std::vector<ChatTurn> ask_at_once(std::size_t count, const std::vector<TokenId>& prompt, const SchedulerOptions& options) {
    boost::asio::io_context loop;
    RandomPace paced(*model_, next_seed());
    Scheduler scheduler(loop, paced, options, nullptr);
    std::vector<ChatTurn> answers(count);
    std::size_t left = count;
    for (ChatTurn& answer : answers) boost::asio::co_spawn(loop, choice(scheduler, prompt, answer, left), boost::asio::detached);
    loop.run();
    stats = scheduler.stats();
    return answers;
  }

  EngineStats stats;
  std::set<std::int32_t> slices;
  ChatHabits habits;

 private:
  std::uint32_t next_seed() {
    trace_.emplace(__FILE__, __LINE__, "slices by seed " + std::to_string(++seed_));
    return seed_;
  }

  static boost::asio::awaitable<void> choice(Scheduler& scheduler, const std::vector<TokenId>& prompt, ChatTurn& answer,
                                             std::size_t& left) {
    const Speculation nothing;
    ChatTurn own = co_await ask(scheduler, prompt, 10, nothing);
    answer = std::move(own);
    if (--left == 0) scheduler.begin_drain();
  }

  static boost::asio::awaitable<ChatTurn> ask(Scheduler& scheduler, const std::vector<TokenId>& prompt, std::int32_t most,
                                              Speculation speculation) {
    GenerationRequest request;
    request.prompt = prompt;
    request.sampling.temperature = 0.0F;
    request.sampling.top_logprobs = 0;
    request.stop.max_tokens = 10;
    request.stop.ignore_eos = true;
    request.speculation = std::move(speculation);
    const Ticket ticket = scheduler.submit(std::move(request)).value();
    ChatTurn answer{prompt, {}, {}, 0, 0};
    for (;;) {
      const std::optional<TokenEvent> event = co_await ticket->next();
      if (const auto* finish = std::get_if<Finish>(&*event)) {
        EXPECT_FALSE(finish->error.has_value());
        answer.cached = finish->usage.cached_tokens;
        co_return answer;
      }
      answer.tokens.push_back(std::get<Token>(*event).id);
      answer.logprobs.push_back(std::bit_cast<std::uint32_t>(std::get<Token>(*event).logprob));
      if (most < 10 && std::cmp_equal(answer.tokens.size(), most)) co_return answer;
    }
  }

  static Speculation guess(const ChatHabits& habits, std::size_t chat, int turn) {
    Speculation speculation;
    if (habits.guesses == nullptr) return speculation;
    std::vector<TokenId> tokens = habits.guesses->at(chat).at(static_cast<std::size_t>(turn)).tokens;
    TokenId& wrong = tokens[(chat + 3 * static_cast<std::size_t>(turn)) % tokens.size()];
    wrong = 3 + (wrong + 1) % 110;
    speculation.prediction = std::make_shared<const std::vector<TokenId>>(std::move(tokens));
    return speculation;
  }

  // kTurns turns, each of the one before, its answer and some new tokens.
  static boost::asio::awaitable<void> chat(Scheduler& scheduler, ChatHabits habits, std::uint32_t seed, std::vector<ChatTurn>& turns,
                                           int& left) {
    std::mt19937 random(seed);
    std::vector<TokenId> prompt;
    for (int turn = 0; turn < kTurns; ++turn) {
      const std::size_t known = prompt.size();
      for (auto i = 5 + random() % 20; i > 0; --i) prompt.push_back(static_cast<TokenId>(3 + random() % 110));
      if (habits.edits) {
        const Speculation nothing;
        co_await ask(scheduler, prompt, 10, nothing);
        prompt[known] = 3 + (prompt[known] + 1) % 110;
      }
      const Speculation speculation = guess(habits, seed, turn);
      ChatTurn answer = co_await ask(scheduler, prompt, habits.lets_go_after, speculation);
      if (habits.asks_again) {
        const ChatTurn again = co_await ask(scheduler, prompt, 10, speculation);
        EXPECT_TRUE(std::equal(answer.logprobs.begin(), answer.logprobs.end(), again.logprobs.begin())) << "another answer";
        answer.cached_again = again.cached;
      }
      prompt.insert(prompt.end(), answer.tokens.begin(), answer.tokens.end());
      turns.push_back(std::move(answer));
    }
    if (--left == 0) scheduler.begin_drain();
  }

  std::unique_ptr<model::LanguageModel> model_;
  std::uint32_t seed_ = 0;                     // of the last slices
  std::optional<testing::ScopedTrace> trace_;  // names it in what fails
};

inline void expect_same(const std::vector<std::vector<ChatTurn>>& one, const std::vector<std::vector<ChatTurn>>& other,
                        const std::string& what) {
  for (std::size_t i = 0; i < one.size(); ++i)
    for (std::size_t turn = 0; turn < kTurns; ++turn) {
      EXPECT_EQ(one[i].at(turn).tokens, other[i].at(turn).tokens) << what << ", chat " << i << ", turn " << turn;
      EXPECT_EQ(one[i].at(turn).logprobs, other[i].at(turn).logprobs) << what << ", chat " << i << ", turn " << turn;
    }
}

}  // namespace braid::sched::test
