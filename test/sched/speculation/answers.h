// Requests of all kinds for the scheduler with a small model, the answers to them, and what is expected of them where tokens are guessed.
#pragma once

#include "files/gguf.h"
#include "grammar/compiler.h"
#include "kernels/select.h"
#include "model/language_model.h"
#include "sched/scheduler.h"
#include "sched/speculation/hostile_drafter.h"
#include "text/codec.h"

#include <bit>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <cstdlib>
#include <gtest/gtest.h>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <variant>
#include <vector>

namespace braid::sched::test {

namespace asio = boost::asio;

inline constexpr std::int32_t kBlockTokens = 8;
inline constexpr std::int32_t kContext = 192;
inline constexpr std::int32_t kSlots = 12;
inline constexpr std::int32_t kRoomyBlocks = 512;
inline constexpr std::int32_t kTightBlocks = 48;
inline constexpr std::int32_t kTightWindows = 40;  // of which a sequence holds eight at most
inline constexpr std::size_t kAtOnce = 32;

inline std::size_t request_count() {
  const char* wanted = std::getenv("BRAID_SPECULATION_REQUESTS");
  return wanted != nullptr ? static_cast<std::size_t>(std::atoi(wanted)) : 240;
}

inline const files::GgufFile& small_model() {
  static const files::GgufFile file = files::GgufFile::open(BRAID_SOURCE_DIR "/models/demo-draft-q8_0.gguf").value();
  return file;
}

struct Answer {
  std::vector<TokenId> tokens;
  std::vector<std::uint32_t> logprobs;  // bits, those of the best tokens included
  FinishReason reason = FinishReason::kError;
  Usage usage;
  bool was_left = false;

  void add(const Token& token) {
    tokens.push_back(token.id);
    logprobs.push_back(std::bit_cast<std::uint32_t>(token.logprob));
    for (const TokenLogprob& top : token.top()) logprobs.push_back(std::bit_cast<std::uint32_t>(top.logprob));
  }
};

// Objects, calls and closed texts, compiled once.
class Constraints {
 public:
  Constraints() : codec_(text::ModelCodec::from_gguf(small_model()).value()), compiler_([this] { return vocabulary(); }) {
    Value age(ValueDict{{"type", Value("integer")}, {"maximum", Value(std::int64_t{99})}});
    Value kind(ValueDict{{"enum", Value(ValueList{Value("fox"), Value("owl"), Value("bear")})}});
    const Value schema(ValueDict{{"type", Value("object")},
                                 {"properties", Value(ValueDict{{"animal", kind}, {"age", age}})},
                                 {"required", Value(ValueList{Value("animal"), Value("age")})},
                                 {"additionalProperties", Value(false)}});
    const ConstraintSpec object{ConstraintSpec::JsonSchema{schema, true}, "schema"};
    add(object);
    add({ConstraintSpec::Sequence{{{ConstraintSpec::Literal{"<tool_call>{\"name\": \"tell\", \"arguments\": "}, ""},
                                   object,
                                   {ConstraintSpec::Literal{"}</tool_call>"}, ""}}},
         "tools"});
    add({ConstraintSpec::Choice{{"the little red kite", "the little red fox", "nothing at all"}}, "choice"});
    add({ConstraintSpec::Regex{"(The|A) fox (ran|slept)( and (ran|slept))*\\."}, "regex"});
    add({ConstraintSpec::JsonObject{}, "object"});
  }

  const text::ModelCodec& codec() const { return *codec_; }
  std::shared_ptr<const Constraint> at(std::size_t index) const { return compiled_[index % compiled_.size()]; }

 private:
  void add(const ConstraintSpec& spec) { compiled_.push_back(compiler_.compile(spec).value()); }

  grammar::Vocabulary vocabulary() const {
    const text::Tokenizer& tokenizer = codec_->tokenizer();
    std::vector<grammar::VocabularyToken> tokens(tokenizer.vocabulary().size());
    for (std::size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = {std::string(tokenizer.token_bytes(static_cast<TokenId>(i))), tokenizer.is_silent(static_cast<TokenId>(i))};
    const auto ends = codec_->end_of_generation();
    return {std::move(tokens), {ends.begin(), ends.end()}};
  }

  std::unique_ptr<const text::ModelCodec> codec_;
  grammar::Compiler compiler_;
  std::vector<std::shared_ptr<const Constraint>> compiled_;
};

inline SamplingParams sampling_of(std::mt19937& random, std::size_t index) {
  SamplingParams sampling{.temperature = random() % 3 == 0 ? 0.0F : 0.4F + 0.1F * static_cast<float>(random() % 10),
                          .top_p = random() % 3 == 0 ? 0.9F : 1.0F,
                          .min_p = random() % 5 == 0 ? 0.02F : 0.0F,
                          .top_k = random() % 2 == 0 ? 40 : 0,
                          .seed = 1000 + index / 3,  // three choices of each request
                          .choice = static_cast<std::uint32_t>(index % 3),
                          .top_logprobs = static_cast<std::int32_t>(random() % 4) - 1};
  switch (random() % 8) {
    case 0:
      sampling.repetition_penalty = 1.3F;
      sampling.penalty_last_n = 5;
      break;
    case 1:
      sampling.presence_penalty = 0.6F;
      sampling.frequency_penalty = 0.3F;
      break;
    case 2:
      sampling.dry_multiplier = 1.5F;
      break;
    case 3:
      sampling.xtc_probability = 0.5F;
      sampling.logit_bias = {{static_cast<TokenId>(10 + random() % 100), 3.0F}};
      break;
    case 4:
      sampling.mirostat = 1 + static_cast<std::int32_t>(random() % 2);
      sampling.temperature = 1.0F;
      break;
    default:
      break;
  }
  return sampling;
}

// Of a model without texts.
inline std::vector<TokenId> tokens_of(std::mt19937& random, std::int32_t vocab) {
  std::vector<TokenId> prompt(4 + random() % 40);
  for (TokenId& id : prompt) id = static_cast<TokenId>(3 + random() % static_cast<std::uint32_t>(vocab - 3));
  const std::vector<TokenId> once = prompt;
  if (random() % 2 == 0) prompt.insert(prompt.end(), once.begin(), once.end());
  return prompt;
}

// Texts that repeat themselves, and texts that do not; half of them begin alike.
inline std::vector<TokenId> prompt_of(std::mt19937& random, const text::ModelCodec& codec) {
  static const std::string story = "Once upon a time, a brave fox named Luna lived in the castle. She loved her kite more than anything. ";
  if (random() % 3 == 0) {
    std::vector<TokenId> prompt(1 + random() % 60);
    for (TokenId& id : prompt) id = static_cast<TokenId>(5 + random() % 1900);
    return prompt;
  }
  std::string text = story;
  if (random() % 2 == 0) text += story;
  text += random() % 2 == 0 ? "Once upon a time, a brave" : "One day, the fox";
  return codec.encode(text, {.add_special = true, .parse_special = false}).value();
}

inline std::vector<GenerationRequest> make_requests(std::size_t count, const Constraints* constraints, std::int32_t vocab) {
  std::mt19937 random(3);
  std::vector<GenerationRequest> requests(count);
  for (std::size_t i = 0; i < count; ++i) {
    GenerationRequest& request = requests[i];
    if (i % 3 == 0) {
      request.prompt = constraints != nullptr ? prompt_of(random, constraints->codec()) : tokens_of(random, vocab);
    } else {
      request.prompt = requests[i - 1].prompt;
    }
    request.sampling = sampling_of(random, i);
    request.stop.max_tokens = static_cast<std::int32_t>(random() % 48);
    request.stop.min_tokens = static_cast<std::int32_t>(random() % 3) * 4;
    request.stop.ignore_eos = random() % 3 == 0;
    if (random() % 6 == 0) request.stop.stop_token_ids = {static_cast<TokenId>((200 + random() % 300) % static_cast<std::uint32_t>(vocab))};
    if (random() % 3 == 0 && constraints != nullptr) request.constraint = constraints->at(random());
    if (random() % 9 == 0) request.prompt_logprobs = 1;
    request.priority = static_cast<std::int32_t>(random() % 3) - 1;
    request.cache_salt = random() % 4 == 0 ? "salt" : "";
    request.client = random() % 2 == 0 ? "one" : "other";
  }
  return requests;
}

// As many for each group of layers. Where there are states, as many, or, in a tight pool, those of all slots and fewer others.
inline std::int32_t blocks_of(const model::LanguageModel& model, std::int32_t blocks) {
  const std::int32_t state = model.kv_groups().states.blocks();
  if (state > 0 && blocks == kTightBlocks) return kTightBlocks / 2 * model.kv_groups().count() + (kSlots + 1) * state;
  return blocks * (model.kv_groups().count() + state);
}

inline SchedulerOptions options_of(const model::LanguageModel& model, std::int32_t blocks, std::int32_t draft_tokens) {
  SchedulerOptions options;
  options.max_batch = kSlots;
  options.max_batch_tokens = 160;
  options.context_length = kContext;
  options.block_tokens = kBlockTokens;
  options.blocks = blocks_of(model, blocks);
  options.groups = model.kv_groups().visibilities();
  options.block_use = model.kv_groups().block_use();
  options.state_blocks = model.kv_groups().states.blocks();
  options.state_interval = 16;
  options.draft_tokens = draft_tokens;
  options.draft_always = true;  // what pays depends on the machine
  options.stream_capacity = 16;
  return options;
}

// Reads some of its requests after one another; leaves a few of them before their end.
inline asio::awaitable<void> read_all(Scheduler& scheduler, const std::vector<GenerationRequest>& requests, std::size_t first, bool leaves,
                                      std::vector<Answer>& answers, std::size_t& left) {
  std::mt19937 random(static_cast<std::uint32_t>(first));
  for (std::size_t i = first; i < requests.size(); i += kAtOnce) {
    Answer& answer = answers[i];
    Ticket ticket = scheduler.submit(requests[i]).value();
    const std::size_t most = leaves && random() % 10 == 0 ? random() % 8 : std::size_t{1} << 20;
    for (bool is_open = true; is_open;) {
      std::optional<TokenEvent> event = co_await ticket->next();
      if (!event) continue;
      if (const auto* token = std::get_if<Token>(&*event)) answer.add(*token);
      if (const auto* finish = std::get_if<Finish>(&*event)) {
        answer.reason = finish->reason;
        answer.usage = finish->usage;
        is_open = false;
      } else if (answer.tokens.size() > most) {
        answer.was_left = true;
        ticket.reset();
        is_open = false;
      }
    }
  }
  if (--left == 0) scheduler.begin_drain();
}

struct Run {
  std::vector<Answer> answers;
  EngineStats stats;
};

inline Run run(model::LanguageModel& model, const SchedulerOptions& options, const std::vector<GenerationRequest>& requests, bool leaves) {
  asio::io_context loop;
  Scheduler scheduler(loop, model, options);
  Run run{std::vector<Answer>(requests.size()), {}};
  std::size_t left = kAtOnce;
  for (std::size_t i = 0; i < kAtOnce; ++i)
    asio::co_spawn(loop, read_all(scheduler, requests, i, leaves, run.answers, left), asio::detached);
  loop.run();
  run.stats = scheduler.stats();
  return run;
}

// `more`: heads, or nothing.
inline std::unique_ptr<model::LanguageModel> load(const files::GgufFile& file, std::int32_t blocks, std::int32_t kv_limit,
                                                  std::shared_ptr<model::Drafter> drafter, model::LoadOptions more = {}) {
  more.threads = 2;
  more.block_tokens = kBlockTokens;
  more.kv_limit = kv_limit;
  more.max_batch = kSlots;
  more.state_drafts = 40;
  more.end_tokens = {2};
  more.drafter = std::move(drafter);
  auto model = model::LanguageModel::load(file, kernels::best_kernel_table(), std::move(more)).value();
  model->allocate_kv(blocks_of(*model, blocks)).value();
  return model;
}

inline std::uint64_t sum_of(const DraftStats::Counts& counts) {
  std::uint64_t sum = 0;
  for (const auto& places : counts) sum = std::accumulate(places.begin(), places.end(), sum);
  return sum;
}

// With the request's own answer as its prediction, or somebody else's, or a part of it.
inline std::shared_ptr<const std::vector<TokenId>> prediction_of(std::mt19937& random, const std::vector<Answer>& plain,
                                                                 std::size_t index) {
  if (random() % 4 > 0) return nullptr;
  std::vector<TokenId> tokens = plain[random() % 3 == 0 ? random() % plain.size() : index].tokens;
  if (tokens.size() > 6 && random() % 2 == 0) tokens[random() % tokens.size()] = 7;
  return std::make_shared<const std::vector<TokenId>>(std::move(tokens));
}

// `by_model`: the method for who wants a model's guesses.
inline void want_guesses(std::vector<GenerationRequest>& requests, const std::vector<Answer>& plain,
                         DraftMethod by_model = DraftMethod::kDraft) {
  const DraftMethod methods[] = {DraftMethod::kAuto,   DraftMethod::kAuto, DraftMethod::kNgram,
                                 DraftMethod::kSuffix, by_model,           DraftMethod::kOff};
  std::mt19937 random(5);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Speculation& wanted = requests[i].speculation;
    wanted.method = methods[random() % std::size(methods)];
    if (random() % 4 == 0) wanted.max_tokens = static_cast<std::int32_t>(1 + random() % 9);
    wanted.prediction = prediction_of(random, plain, i);
  }
}

inline void expect_same(const std::vector<Answer>& plain, const std::vector<Answer>& guessed, std::int32_t& accepted) {
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const Answer& answer = guessed[i];
    accepted += answer.usage.accepted_drafts;
    if (answer.was_left) {
      ASSERT_LE(answer.tokens.size(), plain[i].tokens.size());
      ASSERT_TRUE(std::equal(answer.tokens.begin(), answer.tokens.end(), plain[i].tokens.begin())) << "request " << i;
      continue;
    }
    ASSERT_EQ(answer.tokens, plain[i].tokens) << "request " << i;
    ASSERT_EQ(answer.logprobs, plain[i].logprobs) << "request " << i;
    ASSERT_EQ(answer.reason, plain[i].reason) << "request " << i;
    ASSERT_LT(answer.usage.accepted_drafts, std::max(1, answer.usage.completion_tokens)) << "the first token of an answer is no guess";
  }
}

}  // namespace braid::sched::test
