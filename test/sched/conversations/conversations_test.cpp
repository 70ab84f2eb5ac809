// Many conversations with the embedded model at once, in a pool that holds a few of them: whatever is shared, evicted, written to disk,
// read again, preempted or computed anew, each answer is bit for bit what its conversation gets alone, and names nobody else.
#include "files/gguf.h"
#include "kernels/select.h"
#include "model/language_model.h"
#include "sched/scheduler.h"
#include "store/block_store.h"
#include "support/folder.h"
#include "text/codec.h"

#include <algorithm>
#include <array>
#include <bit>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <cstdint>
#include <cstdlib>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace braid::sched::test {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kConversations = 64;
constexpr std::int32_t kBlockTokens = 8;
constexpr std::int32_t kBlocks = 96;  // less than ten conversations; all together have some 700
constexpr std::int32_t kSlots = 16;
constexpr std::int32_t kContext = 256;
constexpr std::int32_t kMostTokens = 16;
const std::array<std::string, 3> kQuestions{"My name is {}.", "What is 17 + 25?", "What is my name?"};

struct Answer {
  std::vector<TokenId> tokens;
  std::vector<std::uint32_t> logprobs;  // their bits
  Usage usage;
};

struct Turn {
  std::vector<TokenId> prompt;  // the conversation so far
  Answer alone;
};

struct Conversation {
  std::string marker;
  std::vector<Turn> turns;
};

// Unlike one another, and none part of another.
std::string marker_of(std::size_t index) {
  constexpr std::array heads{"Zor", "Bel", "Kam", "Dun", "Fer", "Gil", "Hol", "Lam"};
  constexpr std::array tails{"vin", "ras", "tok", "mil", "san", "nep", "dug", "lom"};
  return std::string(heads.at(index / tails.size())) + tails.at(index % tails.size());
}

asio::awaitable<Answer> ask(Scheduler& scheduler, std::vector<TokenId> prompt) {
  GenerationRequest request;
  request.prompt = std::move(prompt);
  request.sampling.temperature = 0.0F;
  request.sampling.top_logprobs = 0;
  request.stop.max_tokens = kMostTokens;
  const Ticket ticket = *scheduler.submit(std::move(request));
  Answer answer;
  for (;;) {
    const std::optional<TokenEvent> event = co_await ticket->next();
    if (const auto* finish = std::get_if<Finish>(&*event)) {
      EXPECT_FALSE(finish->error.has_value());
      answer.usage = finish->usage;
      co_return answer;
    }
    const auto& token = std::get<Token>(*event);
    answer.tokens.push_back(token.id);
    answer.logprobs.push_back(std::bit_cast<std::uint32_t>(token.logprob));
  }
}

// The embedded model and its vocabulary, and all conversations, each held alone.
class Conversations : public testing::Test {
 protected:
  Conversations() {
    const files::GgufFile file = files::GgufFile::open(BRAID_SOURCE_DIR "/models/demo-q8_0.gguf").value();
    codec_ = text::ModelCodec::from_gguf(file).value();
    model::LoadOptions load;
    load.threads = 2;
    load.context_length = kContext;
    load.block_tokens = kBlockTokens;
    load.max_batch = kSlots;
    const auto ends = codec_->end_of_generation();
    load.end_tokens.assign(ends.begin(), ends.end());
    model_ = model::LanguageModel::load(file, kernels::best_kernel_table(), load).value();
    EXPECT_TRUE(model_->allocate_kv(kBlocks));
    hold_each_alone();
  }

  static SchedulerOptions options() {
    SchedulerOptions options;
    options.max_batch = kSlots;
    options.max_batch_tokens = 512;
    options.context_length = kContext;
    options.block_tokens = kBlockTokens;
    options.blocks = kBlocks;
    options.disk_always = true;
    return options;
  }

  std::vector<TokenId> encode(const std::string& text) const { return codec_->encode(text, {.parse_special = true}).value(); }

  std::string text_of(const Answer& answer) const {
    std::string text;
    const auto decoder = codec_->new_decoder();
    for (const TokenId token : answer.tokens) decoder->append(token, text);
    decoder->finish(text);
    return text;
  }

  void hold_each_alone() {
    asio::io_context loop;
    SchedulerOptions alone = options();
    alone.max_batch = 1;
    alone.prefix_cache = false;
    Scheduler scheduler(loop, *model_, alone);
    std::size_t remembered = 0;
    const auto hold = [&]() -> asio::awaitable<void> {
      for (std::size_t i = 0; i < kConversations; ++i) remembered += co_await hold_alone(scheduler, marker_of(i));
      scheduler.begin_drain();
    };
    asio::co_spawn(loop, hold(), asio::detached);
    loop.run();
    EXPECT_GT(remembered, kConversations / 2) << "else the markers prove little";
  }

  // Whether the last answer has the marker.
  asio::awaitable<bool> hold_alone(Scheduler& scheduler, const std::string& marker) {
    Conversation& conversation = conversations_.emplace_back();
    conversation.marker = marker;
    std::vector<TokenId> prompt = encode("<|im_start|>system\nYou are a friendly assistant.");
    for (std::string question : kQuestions) {
      if (const auto at = question.find("{}"); at != std::string::npos) question.replace(at, 2, marker);
      const auto next = encode("<|im_end|>\n<|im_start|>user\n" + question + "<|im_end|>\n<|im_start|>assistant\n");
      prompt.insert(prompt.end(), next.begin(), next.end());
      Answer alone = co_await ask(scheduler, prompt);
      const Turn& turn = conversation.turns.emplace_back(Turn{prompt, std::move(alone)});
      prompt.insert(prompt.end(), turn.alone.tokens.begin(), turn.alone.tokens.end());
      if (codec_->is_silent(prompt.back())) prompt.pop_back();
    }
    co_return text_of(conversation.turns.back().alone).find(marker) != std::string::npos;
  }

  // All conversations at once, several times over.
  EngineStats hold_all(int rounds, const SchedulerOptions& options, store::BlockStore* store, asio::io_context& loop) {
    Scheduler scheduler(loop, *model_, options, store);
    std::size_t left = kConversations;
    const auto hold = [&](const Conversation& conversation) -> asio::awaitable<void> {
      for (int round = 0; round < rounds; ++round)
        for (const Turn& turn : conversation.turns) {
          const Answer answer = co_await ask(scheduler, turn.prompt);
          expect_same(conversation, turn, answer);
        }
      if (--left == 0) scheduler.begin_drain();
    };
    for (const Conversation& conversation : conversations_) asio::co_spawn(loop, hold(conversation), asio::detached);
    loop.run();
    EXPECT_EQ(left, 0U);
    return scheduler.stats();
  }

  void expect_same(const Conversation& conversation, const Turn& turn, const Answer& answer) const {
    const std::string text = text_of(answer);
    EXPECT_EQ(answer.tokens, turn.alone.tokens) << text << "\n  alone: " << text_of(turn.alone);
    EXPECT_EQ(answer.logprobs, turn.alone.logprobs) << text;
    for (const Conversation& other : conversations_)
      EXPECT_TRUE(&other == &conversation || text.find(other.marker) == std::string::npos) << conversation.marker << " is told: " << text;
  }

  std::unique_ptr<const text::ModelCodec> codec_;
  std::unique_ptr<model::LanguageModel> model_;
  std::vector<Conversation> conversations_;
};

int rounds() {
  const char* wanted = std::getenv("BRAID_CONVERSATION_ROUNDS");
  return wanted != nullptr ? std::atoi(wanted) : 1;
}

// A third without a disk tier, a third with one that takes what is evicted, a third with one that takes all. 192 requests a round.
TEST_F(Conversations, AnswersAreThoseOfEachAlone) {
  std::uint64_t preemptions = 0;
  {
    asio::io_context loop;
    const EngineStats stats = hold_all(rounds(), options(), nullptr, loop);
    EXPECT_GT(stats.cache_evictions, 100U);
    EXPECT_GT(stats.cache_hit_tokens, 1000U);
    preemptions += stats.preemptions;
  }
  for (const bool write_through : {false, true}) {
    const braid::test::Folder folder;
    asio::io_context loop;
    store::StoreOptions wanted;
    wanted.directory = folder.path();
    wanted.limit_bytes = 200'000'000;
    wanted.identity = "the embedded model";
    wanted.payload_bytes = model_->kv_groups().block_bytes();
    wanted.most_tokens = kContext;
    auto store =
        store::BlockStore::open(wanted, store::make_io(), [&](std::function<void()> call) { asio::post(loop, std::move(call)); }).value();
    SchedulerOptions with_disk = options();
    with_disk.write_through = write_through;
    const EngineStats stats = hold_all(rounds(), with_disk, store.get(), loop);
    EXPECT_GT(stats.cache_evictions, 100U);
    EXPECT_GT(stats.cache_disk_hit_tokens, 1000U);
    EXPECT_EQ(stats.disk->read_errors, 0U);
    preemptions += stats.preemptions;
  }
  EXPECT_GT(preemptions, 0U);
}

}  // namespace
}  // namespace braid::sched::test
