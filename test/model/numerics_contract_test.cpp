// The contract: a request's tokens and log-probabilities are the same bits whatever else is in the batch, however its prefill is
// sliced, whether it is preempted, and at any number of threads.
#include "kernels/kv_type.h"
#include "kernels/select.h"
#include "model/adapter_models.h"
#include "model/exchange_cost.h"
#include "model/families/families.h"
#include "model/folder_models.h"
#include "model/forward_harness.h"
#include "model/mixture_model.h"
#include "model/step_driver.h"
#include "model/thread_exchange.h"

#include <algorithm>
#include <cstring>
#include <thread>

namespace braid::model::test {
namespace {

constexpr std::int32_t kBlocks = 2048;

const files::GgufFile& draft_model() {
  static const files::GgufFile file = files::GgufFile::open(BRAID_SOURCE_DIR "/models/demo-draft-q8_0.gguf").value();
  return file;
}

constexpr std::uint32_t kDraftTokens = 2000;

// A sanitizer sees each path with a few requests, and each costs many times as much there.
std::vector<DrivenRequest> make_requests(std::size_t count, std::uint32_t tokens = kDraftTokens) {
#if defined(__SANITIZE_ADDRESS__)
  count = std::min(count, std::max<std::size_t>(8, count / 4));
#endif
  std::mt19937 random(7);
  std::vector<DrivenRequest> requests(count);
  for (std::size_t i = 0; i < count; ++i) {
    DrivenRequest& request = requests[i];
    request.prompt.resize(1 + random() % 40);
    for (TokenId& id : request.prompt) id = static_cast<TokenId>(5 + random() % tokens);
    request.sampling = {.temperature = i % 4 == 0 ? 0.0F : 0.5F + 0.1F * static_cast<float>(i % 8),
                        .top_p = i % 3 == 0 ? 0.9F : 1.0F,
                        .min_p = i % 5 == 0 ? 0.02F : 0.0F,
                        .top_k = i % 2 == 0 ? 40 : 0,
                        .seed = 1000 + i,
                        .choice = static_cast<std::uint32_t>(i % 3),
                        .top_logprobs = static_cast<std::int32_t>(i % 4)};
    switch (i % 7) {
      case 0:
        request.sampling.repetition_penalty = 1.3F, request.sampling.penalty_last_n = 5;
        break;
      case 1:
        request.sampling.presence_penalty = 0.6F, request.sampling.frequency_penalty = 0.3F;
        break;
      case 2:
        request.sampling.dry_multiplier = 1.5F, request.sampling.dry_allowed_length = 1;
        break;
      case 3:
        request.sampling.xtc_probability = 0.5F, request.sampling.logit_bias = {{static_cast<TokenId>(i), 3.0F}};
        break;
      case 4:
        request.sampling.typical_p = 0.7F, request.sampling.top_n_sigma = 2.0F;
        break;
      case 5:
        request.sampling.mirostat = 1 + static_cast<std::int32_t>(i % 2), request.sampling.temperature = 1.0F;
        break;
      default:
        break;
    }
    request.prompt_logprobs = static_cast<std::int32_t>(i % 5) - 2;
    request.stop = {.max_tokens = static_cast<std::int32_t>(2 + i % 9), .min_tokens = 0, .ignore_eos = i % 2 == 0, .stop_token_ids = {}};
  }
  return requests;
}

struct Machine {
  int threads = 1;
  kernels::KvType kv_type = kernels::KvType::kF16;
  std::int32_t pass_rows = 512;
  std::int32_t kv_limit = 0;
  int ranks = 1;
};

std::vector<DrivenAnswer> answers_of_rank(const files::GgufFile& file, const kernels::KernelTable& table, const Machine& machine,
                                          const Share& share, Exchange* exchange, const std::vector<DrivenRequest>& requests,
                                          const Schedule& schedule) {
  LoadOptions options{.threads = machine.threads,
                      .kv_type = machine.kv_type,
                      .packing = {.float_type = {}, .share = share},
                      .kv_limit = machine.kv_limit,
                      .max_batch = 64,
                      .pass_rows = machine.pass_rows,
                      .end_tokens = {2},
                      .progress = {},
                      .exchange = exchange};
  auto model = LanguageModel::load(file, table, options).value();
  model->allocate_kv(kBlocks).value();
  return StepDriver(*model, kBlocks).run(requests, schedule);
}

// Of the last rank, where there are several.
std::vector<DrivenAnswer> answers_of(const files::GgufFile& file, const kernels::KernelTable& table, const Machine& machine,
                                     const std::vector<DrivenRequest>& requests, const Schedule& schedule) {
  SharedValues shared(machine.ranks);
  std::vector<DrivenAnswer> answers;
  const auto run = [&](int rank) {
    ThreadExchange exchange(shared, rank);
    auto own = answers_of_rank(file, table, machine, {.rank = rank, .ranks = machine.ranks}, &exchange, requests, schedule);
    shared.leave();
    return own;
  };
  std::vector<std::jthread> others;
  for (int rank = 0; rank + 1 < machine.ranks; ++rank) others.emplace_back([&run, rank] { run(rank); });
  answers = run(machine.ranks - 1);
  return answers;
}

// Counts what one rank gathers.
class CountingExchange final : public Exchange {
 public:
  explicit CountingExchange(Exchange& exchange) : exchange_(exchange) {}

  void gather(std::span<const float> own, std::span<const std::size_t> counts, std::span<float> all) override {
    ++exchanges;
    floats += static_cast<std::int64_t>(all.size());
    exchange_.gather(own, counts, all);
  }

  std::int64_t exchanges = 0;
  std::int64_t floats = 0;

 private:
  Exchange& exchange_;
};

// A token's pass, and its logits, which are not part of the cost. Where kernels join the gate with what it opens, fewer floats go round.
TEST(ExchangeCost, IsWhatATokenTakes) {
  const ModelShape shape = describe_model(draft_model()).value();
  for (const int ranks : {2, 4}) {
    const Machine machine{.ranks = ranks};
    DrivenRequest request;
    request.prompt = {5};
    request.stop.max_tokens = 1;
    SharedValues shared(ranks);
    std::vector<CountingExchange> counted;
    std::vector<ThreadExchange> exchanges;
    for (int rank = 0; rank < ranks; ++rank) exchanges.emplace_back(shared, rank);
    for (ThreadExchange& exchange : exchanges) counted.emplace_back(exchange);
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        answers_of_rank(draft_model(), kernels::best_kernel_table(), machine, {.rank = rank, .ranks = ranks},
                        &counted[static_cast<std::size_t>(rank)], {request}, {});
      });
    threads.clear();
    const ExchangeCost cost = exchange_cost(shape, {.rank = 0, .ranks = ranks});
    for (const CountingExchange& one : counted) {
      EXPECT_EQ(one.exchanges, cost.exchanges + 1) << ranks;
      EXPECT_LE(one.floats, cost.floats + shape.vocab) << ranks;
      EXPECT_GT(one.floats, (cost.floats + shape.vocab) / 2) << ranks;
    }
  }
}

std::vector<DrivenAnswer> answers_of(const kernels::KernelTable& table, const Machine& machine, const std::vector<DrivenRequest>& requests,
                                     const Schedule& schedule) {
  return answers_of(draft_model(), table, machine, requests, schedule);
}

std::vector<DrivenAnswer> answers_of(const kernels::KernelTable& table, int threads, std::size_t requests, const Schedule& schedule) {
  return answers_of(table, Machine{.threads = threads}, make_requests(requests), schedule);
}

// The portable tier is too slow for all of them.
std::size_t request_count(const kernels::KernelTable& table) { return table.isa == kernels::Isa::kScalar ? 6 : 64; }

TEST(NumericsContract, HoldsForEveryScheduleOnEveryTier) {
  for (const auto* table : available_tables()) {
    const std::size_t count = request_count(*table);
    const auto alone = answers_of(*table, 1, count, {});
    const std::string tier = table->name;
    expect_same(alone, answers_of(*table, 1, count, {.at_once = 64}), tier + ": together");
    expect_same(alone, answers_of(*table, 2, count, {.at_once = 64, .shuffle = true, .slice = 7, .seed = 2}),
                tier + ": small slices, 2 threads");
    expect_same(alone, answers_of(*table, 2, count, {.at_once = 23, .shuffle = true, .slice = 33, .preempt = 0.1, .seed = 3}),
                tier + ": preempted, 2 threads");
  }
}

TEST(NumericsContract, HoldsWhenAStepTakesSeveralPasses) {
  const auto& table = kernels::best_kernel_table();
  expect_same(answers_of(table, 1, 32, {}), answers_of(table, {.threads = 2, .pass_rows = 48}, make_requests(32), {.at_once = 32}),
              "passes of 48 rows");
}

TEST(NumericsContract, HoldsForEveryKvType) {
  const auto& table = kernels::best_kernel_table();
  const auto requests = make_requests(64);
  for (const auto type : {kernels::KvType::kF32, kernels::KvType::kF16, kernels::KvType::kBF16, kernels::KvType::kInt8}) {
    const std::string name = kernels::kv_type_name(type);
    const auto alone = answers_of(table, {.kv_type = type}, requests, {});
    expect_same(alone, answers_of(table, {.kv_type = type}, requests, {.at_once = 64}), name + ": together");
    expect_same(alone,
                answers_of(table, {.threads = 2, .kv_type = type}, requests,
                           {.at_once = 40, .shuffle = true, .slice = 5, .preempt = 0.05, .seed = 4}),
                name + ": shuffled, sliced, preempted, 2 threads");
  }
}

// Contexts of several chunks, which a team splits, with all of the past and with a part of it.
TEST(NumericsContract, HoldsForLongContexts) {
  auto requests = make_requests(3);
  std::mt19937 random(11);
  for (DrivenRequest& request : requests) {
    request.prompt.resize(300 + random() % 500);
    for (TokenId& id : request.prompt) id = static_cast<TokenId>(5 + random() % 2000);
  }
  const auto& table = kernels::best_kernel_table();
  for (const auto type : {kernels::KvType::kF16, kernels::KvType::kInt8}) {
    for (const std::int32_t limit : {0, 290}) {
      const std::string what = std::string(kernels::kv_type_name(type)) + ", limit " + std::to_string(limit);
      const auto alone = answers_of(table, {.kv_type = type, .kv_limit = limit}, requests, {});
      for (const int threads : {2, 5})
        expect_same(alone, answers_of(table, {.threads = threads, .kv_type = type, .kv_limit = limit}, requests, {}), what);
      expect_same(alone,
                  answers_of(table, {.threads = 3, .kv_type = type, .kv_limit = limit}, requests,
                             {.at_once = 3, .shuffle = true, .slice = 150, .seed = 5}),
                  what + ", together and sliced");
    }
  }
}

// Of every family that computes something of its own, on a model whose few tokens are small enough for every tier.
class NumericsContractOfFamilies : public testing::TestWithParam<const char*> {};

// Requests of tokens up to `tokens`, in all orders and pieces; with an f32 pool all tiers have the same bits, but for weights of 16 bits those
// that round activations to them.
void expect_contract(const files::GgufFile& file, std::uint32_t tokens, bool half_weights) {
  const auto requests = make_requests(24, tokens);
  std::vector<DrivenAnswer> scalar;
  for (const auto* table : available_tables()) {
    const Machine machine{.threads = 2, .kv_type = kernels::KvType::kF32};
    const auto alone = answers_of(file, *table, {.kv_type = kernels::KvType::kF32}, requests, {});
    const std::string tier = table->name;
    expect_same(alone, answers_of(file, *table, machine, requests, {.at_once = 24}), tier + ": together");
    expect_same(alone, answers_of(file, *table, machine, requests, {.at_once = 24, .shuffle = true, .slice = 7, .seed = 2}),
                tier + ": small slices");
    expect_same(alone, answers_of(file, *table, machine, requests, {.at_once = 9, .shuffle = true, .slice = 33, .preempt = 0.1, .seed = 3}),
                tier + ": preempted");
    if (scalar.empty()) scalar = alone;
    if (!half_weights || !rounds_activations(*table)) expect_same(scalar, alone, tier + ": as the scalar tier");
  }
}

TEST_P(NumericsContractOfFamilies, HoldsForEveryScheduleOnEveryTier) {
  expect_contract(files::GgufFile::open(std::string(BRAID_SOURCE_DIR "/test/model/reference/") + GetParam() + ".gguf").value(), 190, false);
}

INSTANTIATE_TEST_SUITE_P(Models, NumericsContractOfFamilies, testing::Values("gpt2", "gemma2"),
                         [](const auto& suite) { return std::string(suite.param); });

// Kinds of attention that only folders of the hub have here: scores that fall with distance, windows in some layers with norms of queries
// and keys, parallel branches with layers without positions, norms after the branches, pairs side by side of a part of
// a head; layers with states, also beside experts; and several streams, keys and values of other layers, inputs of layers, experts as a branch of their own.
class NumericsContractOfAttention : public testing::TestWithParam<std::string> {};

TEST_P(NumericsContractOfAttention, HoldsForEveryScheduleOnEveryTier) { expect_contract(open_folder_model(GetParam()), 110, true); }

INSTANTIATE_TEST_SUITE_P(Models, NumericsContractOfAttention,
                         testing::Values("bloom", "gemma3", "cohere2", "olmo3", "gptj", "phi3-longrope", "lfm2", "lfm2-biased", "granite4",
                                         "qwen3.5", "qwen3-next", "bamba", "falcon-h1", "mamba2", "nemotron-h", "lfm2-moe", "granite4-moe",
                                         "qwen3.5-moe", "nemotron-h-moe", "gemma3n", "gemma4", "gemma4-moe"),
                         folder_test_name);

// Experts, whose rows come together by the step.
class NumericsContractOfExperts : public testing::TestWithParam<kernels::WeightType> {};

TEST_P(NumericsContractOfExperts, HoldsForEveryScheduleOnEveryTier) {
  const files::GgufFile file = MixtureModel{.type = GetParam()}.file();
  for (const auto* table : available_tables()) {
    const auto requests = make_requests(table->isa == kernels::Isa::kScalar ? 3 : 24, MixtureModel::kVocab - 10);
    const auto alone = answers_of(file, *table, {.kv_type = kernels::KvType::kF32}, requests, {});
    const Machine machine{.threads = 2, .kv_type = kernels::KvType::kF32};
    const std::string tier = table->name;
    expect_same(alone, answers_of(file, *table, machine, requests, {.at_once = 24}), tier + ": together");
    expect_same(alone, answers_of(file, *table, machine, requests, {.at_once = 24, .shuffle = true, .slice = 7, .seed = 2}),
                tier + ": small slices");
    expect_same(alone, answers_of(file, *table, machine, requests, {.at_once = 9, .shuffle = true, .slice = 33, .preempt = 0.1, .seed = 3}),
                tier + ": preempted");
  }
}

INSTANTIATE_TEST_SUITE_P(Types, NumericsContractOfExperts, testing::Values(kernels::WeightType::kQ8_0, kernels::WeightType::kQ4_K),
                         [](const auto& suite) { return kernels::weight_format(suite.param)->name; });

// Latents, which are keys and values of all heads, sinks beside windows, and layers that share keys and values.
class NumericsContractOfFolders : public testing::TestWithParam<std::string> {};

TEST_P(NumericsContractOfFolders, HoldsForEveryScheduleOnEveryTierAndEveryKvType) {
  const files::GgufFile file = open_folder_model(GetParam());
  for (const auto* table : available_tables()) {
    const auto requests = make_requests(table->isa == kernels::Isa::kScalar ? 3 : 16, 110);
    for (const auto type : {kernels::KvType::kF32, kernels::KvType::kF16, kernels::KvType::kBF16, kernels::KvType::kInt8}) {
      const auto alone = answers_of(file, *table, {.kv_type = type}, requests, {});
      const std::string what = std::string(table->name) + ", " + kernels::kv_type_name(type);
      expect_same(alone, answers_of(file, *table, {.threads = 2, .kv_type = type}, requests, {.at_once = 16}), what + ": together");
      expect_same(alone,
                  answers_of(file, *table, {.threads = 2, .kv_type = type}, requests,
                             {.at_once = 9, .shuffle = true, .slice = 7, .preempt = 0.1, .seed = 3}),
                  what + ": sliced and preempted");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, NumericsContractOfFolders, testing::Values("deepseek-v3", "gpt-oss", "gemma4"), folder_test_name);

// Rows of several adapters and of none in one batch: float32, bf16, magnitudes, two with scales, and whole weights.
std::vector<DrivenAnswer> adapted_answers(const files::GgufFile& file, const kernels::KernelTable& table, int threads,
                                          const std::vector<DrivenRequest>& requests, const Schedule& schedule) {
  LoadOptions options{
      .threads = threads, .kv_type = kernels::KvType::kF32, .max_batch = 64, .pass_rows = 100, .end_tokens = {2}, .progress = {}};
  auto model = LanguageModel::load(file, table, options).value();
  model->allocate_kv(kBlocks).value();
  const auto tuned = adapting::RandomAdapter{.seed = 1, .rank = 4}.build(*model, table);
  const auto half = adapting::RandomAdapter{.seed = 2, .rank = 19, .half = true}.build(*model, table);
  const auto sized = adapting::RandomAdapter{.seed = 3, .rank = 2, .magnitudes = true}.build(*model, table);
  model->adapters().set(3, adapting::only(adapting::RandomAdapter{.seed = 4, .rank = 3, .whole = true}.build(*model, table)));
  model->adapters().set(1, adapting::only(tuned));
  model->adapters().set(2, adapting::only(half));
  model->adapters().set(900, adapting::only(sized));
  model->adapters().set(4, std::make_shared<AdapterSet>(std::vector<AdapterSet::Part>{{tuned, 0.5F}, {half, -0.25F}}));
  return StepDriver(*model, kBlocks).run(requests, schedule);
}

// In all orders and pieces, and what names none has the bits that it has where there are none.
void expect_contract_of_adapters(const files::GgufFile& file, std::uint32_t tokens, std::size_t scalar_requests, bool half_weights) {
  constexpr std::uint32_t kAdapters[] = {0, 1, 2, 900, 4, 3};
  auto requests = make_requests(24, tokens);
  for (std::size_t i = 0; i < requests.size(); ++i) requests[i].adapter = kAdapters[i % 6];
  std::vector<DrivenAnswer> scalar;
  for (const auto* table : available_tables()) {
    auto some = requests;
    if (table->isa == kernels::Isa::kScalar) some.resize(scalar_requests);
    const std::string tier = table->name;
    const auto alone = adapted_answers(file, *table, 1, some, {});
    expect_same(alone, adapted_answers(file, *table, 2, some, {.at_once = 30}), tier + ": together");
    expect_same(alone, adapted_answers(file, *table, 2, some, {.at_once = 9, .shuffle = true, .slice = 7, .preempt = 0.1, .seed = 3}),
                tier + ": small slices, preempted");
    auto plain = some;
    for (DrivenRequest& request : plain) request.adapter = 0;
    const auto base = answers_of(file, *table, {.kv_type = kernels::KvType::kF32}, plain, {.at_once = 30});
    for (std::size_t i = 0; i < some.size(); ++i) {
      EXPECT_EQ(same_bytes(alone[i].logprobs, base[i].logprobs) && alone[i].tokens == base[i].tokens,
                some[i].adapter == 0 || alone[i].logprobs.empty())
          << tier << ", request " << i;
    }
    if (scalar.empty()) scalar = alone;
    if (half_weights && rounds_activations(*table)) continue;
    expect_same(scalar, {alone.begin(), alone.begin() + static_cast<std::ptrdiff_t>(scalar.size())}, tier + ": as the scalar tier");
  }
}

TEST(NumericsContractOfAdapters, HoldsForEveryScheduleOnEveryTier) { expect_contract_of_adapters(draft_model(), kDraftTokens, 6, false); }

TEST(NumericsContractOfAdapters, HoldsForLatents) { expect_contract_of_adapters(open_folder_model("deepseek-v3"), 110, 6, true); }

TEST(NumericsContractOfAdapters, HoldsForExperts) {
  expect_contract_of_adapters(MixtureModel{.type = kernels::WeightType::kQ8_0}.file(), MixtureModel::kVocab - 10, 6, false);
}

// Gemma 2's windows and caps over contexts of several chunks, which a team splits.
TEST(NumericsContract, HoldsForLongContextsWithWindowsInSomeLayers) {
  const files::GgufFile file = files::GgufFile::open(BRAID_SOURCE_DIR "/test/model/reference/gemma2.gguf").value();
  auto requests = make_requests(3, 190);
  std::mt19937 random(12);
  for (DrivenRequest& request : requests) {
    request.prompt.resize(300 + random() % 500);
    for (TokenId& id : request.prompt) id = static_cast<TokenId>(5 + random() % 190);
  }
  const auto& table = kernels::best_kernel_table();
  const auto alone = answers_of(file, table, {}, requests, {});
  for (const int threads : {2, 5}) expect_same(alone, answers_of(file, table, {.threads = threads}, requests, {}), "a team");
  expect_same(alone,
              answers_of(file, table, {.threads = 3}, requests, {.at_once = 3, .shuffle = true, .slice = 150, .preempt = 0.05, .seed = 5}),
              "together, sliced and preempted");
}

// Several ranks, whose shares are even or not, and more of them than there are heads of keys and values.
TEST(NumericsContractOfRanks, HoldsOnEveryTier) {
  for (const auto* table : available_tables()) {
    const auto requests = make_requests(table->isa == kernels::Isa::kScalar ? 3 : 24);
    const auto alone = answers_of(*table, {}, requests, {});
    for (const int ranks : {2, 3, 4})
      expect_same(alone,
                  answers_of(*table, {.threads = 2, .ranks = ranks}, requests,
                             {.at_once = 9, .shuffle = true, .slice = 7, .preempt = 0.1, .seed = 3}),
                  std::string(table->name) + ", ranks: " + std::to_string(ranks));
  }
}

class NumericsContractOfRankedFolders : public testing::TestWithParam<std::string> {};

TEST_P(NumericsContractOfRankedFolders, Holds) {
  const files::GgufFile file = open_folder_model(GetParam());
  const auto& table = kernels::best_kernel_table();
  const auto requests = make_requests(12, 110);
  const auto alone = answers_of(file, table, {}, requests, {});
  for (const int ranks : {2, 3})
    expect_same(alone,
                answers_of(file, table, {.ranks = ranks}, requests, {.at_once = 9, .shuffle = true, .slice = 7, .preempt = 0.1, .seed = 3}),
                std::to_string(ranks) + " ranks");
}

INSTANTIATE_TEST_SUITE_P(Models, NumericsContractOfRankedFolders,
                         testing::Values("bloom", "gemma3", "cohere2", "olmo3", "lfm2", "granite4", "qwen3.5", "bamba", "mamba2",
                                         "nemotron-h", "deepseek-v3", "gpt-oss", "gemma3n", "gemma4", "gemma4-moe"),
                         folder_test_name);

TEST(NumericsContractOfRanks, HoldsForExperts) {
  const files::GgufFile file = MixtureModel{.type = kernels::WeightType::kQ4_K}.file();
  const auto& table = kernels::best_kernel_table();
  const auto requests = make_requests(24, MixtureModel::kVocab - 10);
  expect_same(answers_of(file, table, {}, requests, {}), answers_of(file, table, {.ranks = 2}, requests, {.at_once = 9, .slice = 7}),
              "experts");
}

TEST(NumericsContract, AllTiersGiveTheSameBits) {
  // Over an f32 pool, because AMX attends to the others in bf16.
  const auto requests = make_requests(6);
  const auto tables = available_tables();
  const Machine alone{.kv_type = kernels::KvType::kF32};
  const Machine team{.threads = 2, .kv_type = kernels::KvType::kF32};
  const auto scalar = answers_of(*tables.front(), alone, requests, {.at_once = 6});
  for (const auto* table : tables) expect_same(scalar, answers_of(*table, team, requests, {.at_once = 3, .slice = 9}), table->name);
}

}  // namespace
}  // namespace braid::model::test
