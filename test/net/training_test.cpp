// Heads and LoRA fitted to preferences and scores: the numbers, and jobs from their body to the adapter that comes out.
#include "braid/adapters.h"
#include "net/json/parse.h"
#include "net/predict/tensor_file.h"
#include "net/test_server.h"
#include "net/training/adapter_folder.h"
#include "net/training/head_fit.h"
#include "net/training/lora_fit.h"
#include "support/folder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::test {
namespace {

using net::training::Example;
using net::training::FitFigures;
using net::training::FitOptions;
using net::training::HeadFit;
using net::training::LinearHead;

std::vector<std::vector<float>> random_vectors(std::size_t count, std::size_t width, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.5F, 2.0F);
  std::vector<std::vector<float>> vectors(count, std::vector<float>(width));
  for (auto& vector : vectors)
    for (float& value : vector) value = normal(random);
  return vectors;
}

double score_of(const LinearHead& head, const std::vector<float>& vector) {
  double sum = static_cast<double>(head.bias);
  for (std::size_t i = 0; i < vector.size(); ++i) sum += static_cast<double>(head.weight[i]) * static_cast<double>(vector[i]);
  return sum;
}

// A head that made the scores is found again.
TEST(HeadFit, FindsTheHeadThatMadeTheScores) {
  const LinearHead truth{{0.5F, -1.25F, 2.0F, 0.0F}, 3.0F};
  const auto vectors = random_vectors(200, 4, 1);
  std::vector<Example> examples;
  for (std::size_t i = 0; i < vectors.size(); ++i)
    examples.push_back({.text = i, .rejected = {}, .score = static_cast<float>(score_of(truth, vectors[i]))});
  HeadFit fit(vectors, examples, {.epochs = 1000, .learning_rate = 0.1, .l2 = 0.0, .held_out = 50, .begin = {}});
  while (!fit.done()) fit.advance();
  const LinearHead found = fit.head();
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(found.weight[i], truth.weight[i], 1e-3);
  EXPECT_NEAR(found.bias, truth.bias, 1e-2);
  EXPECT_LT(fit.held_out().loss, 1e-4);
}

// At the optimum of the Bradley-Terry likelihood, which the penalty makes the only one, no direction leads further down.
TEST(HeadFit, EndsWhereTheLikelihoodOfPreferencesHasNoSlope) {
  const auto vectors = random_vectors(60, 3, 2);
  std::mt19937 random(3);
  const LinearHead truth{{1.0F, -0.5F, 0.25F}, 0.0F};
  std::vector<Example> examples;
  for (std::size_t i = 0; i < 200; ++i) {
    const std::size_t a = random() % 60, b = (a + 1 + random() % 59) % 60;
    const double lead = score_of(truth, vectors[a]) - score_of(truth, vectors[b]);
    const bool a_wins = std::uniform_real_distribution<double>(0, 1)(random) < 1.0 / (1.0 + std::exp(-lead));
    examples.push_back({.text = a_wins ? a : b, .rejected = a_wins ? b : a, .score = 0});
  }
  HeadFit fit(vectors, examples, {.epochs = 3000, .learning_rate = 0.05, .l2 = 0.0, .held_out = 0, .begin = {}});
  const double before = fit.learnt().loss;
  EXPECT_NEAR(before, std::log(2.0), 1e-12);  // of a head of zeros
  while (!fit.done()) fit.advance();
  const LinearHead head = fit.head();
  const auto loss = [&](const LinearHead& at) {
    double sum = 0.0;
    for (const Example& example : examples)
      sum += std::log1p(std::exp(score_of(at, vectors[*example.rejected]) - score_of(at, vectors[example.text])));
    return sum / static_cast<double>(examples.size());
  };
  EXPECT_NEAR(loss(head), fit.learnt().loss, 1e-6);
  for (std::size_t i = 0; i < 3; ++i)
    for (const float step : {-0.01F, 0.01F}) {
      LinearHead other = head;
      other.weight[i] += step;
      EXPECT_GT(loss(other), loss(head)) << i << " " << step;
    }
  EXPECT_GT(fit.learnt().accuracy, 0.75);
}

TEST(HeadFit, GivesTheSameBitsAgainAndGoesOnFromAHead) {
  const auto vectors = random_vectors(20, 8, 4);
  std::vector<Example> examples;
  for (std::size_t i = 0; i < 10; ++i) examples.push_back({.text = 2 * i, .rejected = 2 * i + 1, .score = 0});
  const auto fitted = [&](std::optional<LinearHead> begin) {
    HeadFit fit(vectors, examples, {.epochs = 50, .begin = std::move(begin)});
    const double first = fit.learnt().loss;
    while (!fit.done()) fit.advance();
    return std::pair(first, fit.head());
  };
  const auto [first, head] = fitted({});
  EXPECT_EQ(fitted({}).second.weight, head.weight);
  EXPECT_LT(fitted(head).first, first);
}

// A text's score is the mean of its tokens' vectors of two numbers, times a matrix's two and the head's one, plus the head's bias.
class FakeLayer final : public TunableLayer {
 public:
  FakeLayer(std::uint64_t bytes_of_text, std::uint64_t bytes_of_work) : bytes_of_text_(bytes_of_text), bytes_of_work_(bytes_of_work) {}

  std::size_t parameter_count() const override { return 4; }
  std::vector<float> first_parameters(std::uint64_t seed) const override { return {0.1F * static_cast<float>(seed), 0.0F, 1.0F, 0.0F}; }
  bool has_own_head() const override { return false; }
  std::int32_t layer() const override { return 5; }
  std::uint64_t bytes() const override { return 100; }
  std::uint64_t text_bytes(std::size_t tokens) const override { return tokens * bytes_of_text_; }
  std::uint64_t work_bytes(std::size_t tokens) const override { return tokens * bytes_of_work_; }
  void begin_text(std::vector<float> inputs) override {
    std::array<double, 2>& mean = means_.emplace_back();
    for (std::size_t i = 0; i < inputs.size(); ++i)
      mean[i % 2] += 2.0 * static_cast<double>(inputs[i]) / static_cast<double>(inputs.size());
    left_ = 3;
  }
  void begin_score(std::size_t text, std::span<const float> parameters) override {
    text_ = text;
    parameters_ = parameters;
    left_ = 3;
  }
  void begin_slope(double factor, std::span<double> gradient) override {
    const double head = parameters_[2];
    gradient[0] += factor * head * means_[text_][0];
    gradient[1] += factor * head * means_[text_][1];
    gradient[2] += factor * sum();
    gradient[3] += factor;
    left_ = 3;
  }
  std::size_t advance(std::size_t work) override {
    EXPECT_FALSE(is_over() && work == 0);
    const std::size_t done = std::min(work, left_);
    left_ -= done;
    return done;
  }
  bool is_over() const override { return left_ == 0; }
  double score() const override { return double{parameters_[2]} * sum() + double{parameters_[3]}; }
  std::vector<std::pair<std::string, Tensor>> tensors(std::span<const float> parameters) const override {
    std::vector<std::pair<std::string, Tensor>> all;
    all.emplace_back("everything", Tensor::zeros(ElementType::kFloat32, {4}));
    all.front().second.floats.assign(parameters.begin(), parameters.end());
    return all;
  }

 private:
  double sum() const { return double{parameters_[0]} * means_[text_][0] + double{parameters_[1]} * means_[text_][1]; }

  const std::uint64_t bytes_of_text_, bytes_of_work_;
  std::vector<std::array<double, 2>> means_;
  std::size_t text_ = 0;
  std::span<const float> parameters_;
  std::size_t left_ = 0;
};

std::shared_ptr<FakeLayer> layer_of(const std::vector<std::vector<float>>& texts) {
  auto layer = std::make_shared<FakeLayer>(8, 8);
  for (const auto& text : texts) {
    layer->begin_text(text);
    layer->advance(1000);
  }
  return layer;
}

struct Fitted {
  net::training::LoraState state;
  std::vector<double> losses;  // by epoch
  FitFigures held_out;
};

// In pieces of so much work; up to an epoch, or to the end.
Fitted fitted(const std::shared_ptr<FakeLayer>& layer, const std::vector<Example>& examples, FitOptions options, std::uint64_t seed,
              std::size_t work, std::optional<net::training::LoraState> begin = {}, std::int32_t until = 1'000'000) {
  net::training::LoraFit fit(layer, examples, std::move(options), {.shape = {}, .batch = 3, .seed = seed}, std::move(begin));
  Fitted fitted;
  while (!fit.done() && fit.epoch() < until)
    if (fit.advance(work)) fitted.losses.push_back(fit.learnt().loss);
  fitted.state = fit.state();
  fitted.held_out = fit.held_out();
  return fitted;
}

std::vector<Example> ten_pairs() {
  std::vector<Example> examples;
  for (std::size_t i = 0; i < 10; ++i) examples.push_back({.text = 2 * i, .rejected = 2 * i + 1, .score = 0});
  return examples;
}

TEST(LoraFit, FindsWhatMadeTheScores) {
  const auto texts = random_vectors(40, 2, 6);
  std::vector<Example> examples;
  for (std::size_t i = 0; i < texts.size(); ++i)
    examples.push_back({.text = i, .rejected = {}, .score = 0.5F * texts[i][0] - 2.0F * texts[i][1] + 3.0F});
  const Fitted found =
      fitted(layer_of(texts), examples, {.epochs = 400, .learning_rate = 0.05, .l2 = 0.0, .held_out = 10, .begin = {}}, 1, 1);
  const std::vector<float>& p = found.state.parameters;
  EXPECT_NEAR(p[0] * p[2], 0.5, 1e-2);
  EXPECT_NEAR(p[1] * p[2], -2.0, 1e-2);
  EXPECT_NEAR(p[3], 3.0, 2e-2);
  EXPECT_LT(found.held_out.loss, 1e-2);
  EXPECT_GT(found.losses.front(), 1.0);
  EXPECT_EQ(found.state.steps, 400 * 10) << "30 examples in batches of 3";
}

TEST(LoraFit, MakesPreferredTextsLead) {
  const auto layer = layer_of(random_vectors(20, 2, 7));
  const FitOptions options{.epochs = 30, .learning_rate = 0.05, .l2 = 0.0, .held_out = 3, .begin = {}};
  const Fitted once = fitted(layer, ten_pairs(), options, 1, 1'000'000);
  EXPECT_LT(once.losses.back(), once.losses.front());
  EXPECT_GT(once.held_out.loss, 0.0);
  EXPECT_EQ(once.state.parameters[3], 0.0F) << "a difference has no bias";
  EXPECT_NE(fitted(layer, ten_pairs(), options, 2, 1'000'000).state.parameters, once.state.parameters);
}

// Whatever pieces it was made in, and wherever it was left between two epochs.
TEST(LoraFit, GivesTheSameBitsInPiecesAndFromItsState) {
  const auto layer = layer_of(random_vectors(20, 2, 7));
  const FitOptions options{.epochs = 9, .learning_rate = 0.05, .l2 = 0.01, .held_out = 3, .begin = {}};
  const Fitted whole = fitted(layer, ten_pairs(), options, 1, 1'000'000);
  const Fitted half = fitted(layer, ten_pairs(), options, 1, 1, {}, 4);
  EXPECT_EQ(half.state.epoch, 4);
  const Fitted rest = fitted(layer, ten_pairs(), options, 1, 2, half.state);
  EXPECT_EQ(rest.state.parameters, whole.state.parameters);
  EXPECT_EQ(rest.state.first, whole.state.first);
  EXPECT_EQ(rest.state.second, whole.state.second);
  EXPECT_EQ(rest.losses, std::vector<double>(whole.losses.begin() + 4, whole.losses.end()));
}

// What a job loads: the revision tells the path.
class FakeAdapters final : public Adapters {
 public:
  std::vector<AdapterFacts> list() const override { return {}; }
  bool has(std::string_view) const override { return false; }
  bool had_any() const override { return false; }
  Result<std::shared_ptr<const ServedModel>> apply(std::shared_ptr<const ServedModel> base, std::span<const AdapterChoice>) override {
    return base;
  }
  Result<AdapterUse> current(const AdapterUse&) override { return now; }
  boost::asio::awaitable<Result<AdapterFacts>> load(std::string name, WeightSource source, std::optional<UpdateMode> replacing) override {
    EXPECT_EQ(replacing, UpdateMode::kFinish);
    loaded = source.path;
    AdapterFacts facts;
    facts.name = std::move(name);
    facts.revision = "r7";
    co_return facts;
  }
  Result<void> unload(std::string_view) override { return {}; }
  boost::asio::awaitable<Result<std::shared_ptr<TunableLayer>>> tunable_layer(AdapterUse use, LoraShape lora,
                                                                              std::uint64_t most_bytes) override {
    EXPECT_EQ(most_bytes, std::uint64_t{4} << 30U);
    EXPECT_EQ(use.revision, now.revision);
    if (lora.modules != std::vector<std::string>{"v_proj"}) co_return invalid_argument("it has v_proj alone", "lora_config");
    if (!later.empty()) now.revision = later;
    co_return std::make_shared<FakeLayer>(bytes_of_text, bytes_of_work);
  }

  std::uint64_t bytes_of_text = 8, bytes_of_work = 8;
  std::string later;  // revision that comes while a layer is made
  std::string loaded;
  AdapterUse now{.index = 3, .revision = "w1"};
};

net::ServerOptions training_options(const std::string& folder) {
  net::ServerOptions options = test_options();
  options.adapter_dirs = {folder};
  return options;
}

struct Training : testing::Test {
  Folder folder;
  FakeAdapters adapters;
  TestServer server{training_options(folder.path())};

  // A text's vector says how often it has each of two letters.
  Training() {
    server.on_loop([&] {
      server.model().adapters = &adapters;
      server.engine().script = [](const GenerationRequest& request) {
        PooledVector pooled{{0.0F, 0.0F}};
        for (const TokenId id : request.prompt)
          if (id == 'a' || id == 'b') pooled.values[id == 'a' ? 0 : 1] += 1.0F;
        if (request.pooled_output == PooledOutput::kLastInputs) {
          EXPECT_EQ(request.pooling, Pooling::kEach);
          pooled.values.clear();
          for (const TokenId id : request.prompt)
            pooled.values.insert(pooled.values.end(), {id == 'a' ? 1.0F : 0.0F, id == 'b' ? 1.0F : 0.0F});
        }
        return std::vector<TokenEvent>{std::move(pooled), Finish{}};
      };
    });
  }

  Value ask(const std::string& bytes, int status = 200) {
    Reply reply = server.ask(from_this_machine(bytes));
    EXPECT_EQ(reply.status, status) << reply.body;
    return net::json::parse_object(reply.body).value();
  }
  std::string text(const Value& value, std::string_view key) { return *value.find(key)->get_if<std::string>(); }

  Value finished(const std::string& id) {
    while (true) {
      Value job = ask(test::get("/v1/training/jobs/" + id));
      if (!job.find("finished")->is_null()) return job;
    }
  }
};

constexpr const char* kPairs =
    R"("data":[{"chosen":"aaa","rejected":"bb"},{"chosen":"aab","rejected":"bba"},{"chosen":[97,97],"rejected":"b"}])";

TEST_F(Training, AJobBecomesAnAdapterThatPrefersWhatWasChosen) {
  const Value job = ask(
      post("/v1/training/jobs", fmt::format(R"({{"model":"fake-model","name":"liked","epochs":40,"checkpoint_every":10,{}}})", kPairs)));
  EXPECT_EQ(text(job, "object"), "training.job");
  EXPECT_EQ(text(job, "kind"), "pairs");
  const Value done = finished(text(job, "id"));
  EXPECT_EQ(text(done, "status"), "succeeded");
  EXPECT_EQ(text(done, "revision"), "r7");
  EXPECT_EQ(*done.find("texts")->find("done"), Value(6));
  EXPECT_EQ(*done.find("epochs")->find("done"), Value(40));
  EXPECT_EQ(done.find("learnt")->find("accuracy")->number(), 1.0);
  EXPECT_EQ(*done.find("checkpoint")->find("epoch"), Value(40));
  server.on_loop([&] {
    EXPECT_EQ(adapters.loaded, folder.path() + "/liked");
    for (const GenerationRequest& request : server.engine().submitted) {
      EXPECT_EQ(request.priority, 100);
      EXPECT_EQ(request.adapter.index, 3U);
    }
  });
  const LinearHead head = net::training::read_head(folder.path() + "/liked", 2).value();
  EXPECT_GT(head.weight[0], head.weight[1]);
  EXPECT_EQ(*ask(test::get("/v1/training/jobs")).find("data")->get_if<ValueList>()->front().find("id"), *job.find("id"));

  const Value again =
      ask(post("/v1/training/jobs", fmt::format(R"({{"name":"liked","epochs":1,"learning_rate":0,"resume":true,{}}})", kPairs)));
  EXPECT_EQ(text(finished(text(again, "id")), "status"), "succeeded");
  const LinearHead resumed = net::training::read_head(folder.path() + "/liked", 2).value();
  for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(resumed.weight[i], head.weight[i], 1e-5);
}

constexpr const char* kLora = R"("lora_config":{"rank":2,"target_modules":["v_proj"],"batch_size":2,"seed":3},"learning_rate":0.02)";

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(Training, LoraBecomesAnAdapterAndGoesOnToTheSameBits) {
  const auto job = [&](const std::string& name, int epochs, const std::string& more) {
    return ask(post("/v1/training/jobs", fmt::format(R"({{"name":"{}","epochs":{},{},{}{}}})", name, epochs, kPairs, kLora, more)));
  };
  const Value begun = job("whole", 40, "");
  EXPECT_EQ(begun.find("lora_config")->find("rank")->number(), 2.0);
  const Value done = finished(text(begun, "id"));
  EXPECT_EQ(text(done, "status"), "succeeded");
  EXPECT_EQ(text(done, "revision"), "r7");
  EXPECT_EQ(done.find("learnt")->find("accuracy")->number(), 1.0);
  const std::string whole = bytes_of(folder.path() + "/whole/adapter_model.safetensors");
  EXPECT_NE(whole.find("everything"), std::string::npos);
  EXPECT_EQ(bytes_of(folder.path() + "/whole/adapter_config.json"),
            R"({"peft_type": "LORA", "task_type": "SEQ_CLS", "r": 2, "lora_alpha": 16, "target_modules": ["v_proj"], )"
            R"("layers_to_transform": [5], "modules_to_save": ["score"]})");

  // Left behind whichever epoch it has come to.
  const Value part = job("part", 40, R"(,"checkpoint_every":1)");
  while (bytes_of(folder.path() + "/part/training_state.safetensors").empty()) {
  }
  ask(post("/v1/training/jobs/" + text(part, "id") + "/cancel", ""));
  finished(text(part, "id"));
  const Value rest = finished(text(job("part", 40, R"(,"resume":true)"), "id"));
  const bool was_over = text(rest, "status") == "failed" && text(rest, "error").find("is of epoch 40") != std::string::npos;
  EXPECT_TRUE(was_over || text(rest, "status") == "succeeded") << text(rest, "error");
  EXPECT_EQ(bytes_of(folder.path() + "/part/adapter_model.safetensors"), whole);

  const Value other =
      finished(text(ask(post("/v1/training/jobs", fmt::format(R"({{"name":"part","resume":true,{},"lora_config":{{"rank":3,)"
                                                              R"("target_modules":["v_proj"]}}}})",
                                                              kPairs))),
                    "id"));
  EXPECT_NE(text(other, "error").find("is of another fit (rank 2"), std::string::npos) << text(other, "error");
  const Value alone = finished(text(ask(post("/v1/training/jobs", fmt::format(R"({{"name":"part","resume":true,{}}})", kPairs))), "id"));
  EXPECT_NE(text(alone, "error").find("a head alone does not go on"), std::string::npos) << text(alone, "error");
  EXPECT_EQ(bytes_of(folder.path() + "/part/adapter_model.safetensors"), whole);
  // A head takes its place, and LoRA does not go on from that.
  finished(text(ask(post("/v1/training/jobs", fmt::format(R"({{"name":"part","epochs":1,{}}})", kPairs))), "id"));
  const Value none = finished(text(job("part", 40, R"(,"resume":true)"), "id"));
  EXPECT_NE(text(none, "error").find("there is no checkpoint of LoRA"), std::string::npos) << text(none, "error");
}

TEST_F(Training, LoraWhoseLayerIsOfOlderWeightsThanItsTextsSaysSo) {
  server.on_loop([&] { adapters.later = "w2"; });
  const Value done = finished(text(ask(post("/v1/training/jobs", fmt::format(R"({{"name":"x",{},{}}})", kPairs, kLora))), "id"));
  EXPECT_EQ(text(done, "status"), "failed");
  EXPECT_NE(text(done, "error").find("were replaced"), std::string::npos);
}

TEST_F(Training, LoraIsRefusedBeyondItsMemoryAndWhereTheLayerIsNone) {
  const auto refused = [&](const std::string& lora) {
    return server.ask(from_this_machine(post("/v1/training/jobs", fmt::format(R"({{"name":"x",{},"lora_config":{}}})", kPairs, lora))))
        .body;
  };
  EXPECT_NE(refused("{}").find("it has v_proj alone"), std::string::npos);
  server.on_loop([&] { adapters.bytes_of_text = std::uint64_t{300} << 20U; });
  EXPECT_NE(refused(R"({"target_modules":["v_proj"]})").find("give fewer or shorter texts"), std::string::npos);
  server.on_loop([&] {
    adapters.bytes_of_text = 8;
    adapters.bytes_of_work = std::uint64_t{2} << 30U;  // for each token of the longest text
  });
  EXPECT_NE(refused(R"({"target_modules":["v_proj"]})").find("give fewer or shorter texts"), std::string::npos);
}

TEST_F(Training, AJobIsCancelled) {
  server.on_loop([&] { server.engine().script = [](const GenerationRequest&) { return std::vector<TokenEvent>(); }; });
  const Value job = ask(post("/v1/training/jobs", fmt::format(R"({{"name":"never",{}}})", kPairs)));
  const std::string id = text(job, "id");
  EXPECT_TRUE(server.eventually([&] { return server.engine().submitted.size() >= 4; }));  // no more than that at once
  EXPECT_EQ(server.ask(from_this_machine(post("/v1/training/jobs", fmt::format(R"({{"name":"never",{}}})", kPairs)))).status, 400);
  EXPECT_EQ(text(ask(post("/v1/training/jobs/" + id + "/cancel", "")), "status"), "cancelled");
  EXPECT_EQ(text(finished(id), "status"), "cancelled");
  EXPECT_TRUE(server.eventually([&] { return server.engine().live.empty(); }));
  server.on_loop([&] { EXPECT_EQ(server.engine().submitted.size(), 4U); });
}

TEST_F(Training, AJobTellsWhyItFailed) {
  server.on_loop([&] {
    server.engine().script = [](const GenerationRequest&) {
      Finish finish;
      finish.reason = FinishReason::kError;
      finish.error = Error{ErrorCode::kInternal, "the model failed", ""};
      return std::vector<TokenEvent>{finish};
    };
  });
  const Value done = finished(text(ask(post("/v1/training/jobs", fmt::format(R"({{"name":"broken",{}}})", kPairs))), "id"));
  EXPECT_EQ(text(done, "status"), "failed");
  EXPECT_EQ(text(done, "error"), "the model failed");
}

// One head is fitted to vectors of one revision.
TEST_F(Training, AJobWhoseTextsMeetNewerWeightsSaysSo) {
  const auto expect_replaced = [&](const std::string& name) {
    const Value done = finished(text(ask(post("/v1/training/jobs", fmt::format(R"({{"name":"{}",{}}})", name, kPairs))), "id"));
    EXPECT_EQ(text(done, "status"), "failed");
    EXPECT_NE(text(done, "error").find("were replaced"), std::string::npos) << text(done, "error");
  };
  server.on_loop([&] {
    server.engine().script = [&](const GenerationRequest&) {
      adapters.now = {.index = 4, .revision = "w2"};
      return std::vector<TokenEvent>{PooledVector{{0.0F, 0.0F}}, Finish{}};
    };
  });
  expect_replaced("between");
  server.on_loop([&] {
    server.engine().script = [&](const GenerationRequest&) {
      Finish finish;
      finish.usage.weight_changes = 1;
      return std::vector<TokenEvent>{PooledVector{{0.0F, 0.0F}}, finish};
    };
  });
  expect_replaced("within");
}

TEST_F(Training, TakesABaseWithNewerWeightsAndNoneThatIsAdapted) {
  server.on_loop([&] { server.model().adapter = {.index = 3, .revision = "w1"}; });
  EXPECT_EQ(text(finished(text(ask(post("/v1/training/jobs", fmt::format(R"({{"name":"x",{}}})", kPairs))), "id")), "status"), "succeeded");
  server.on_loop([&] { server.model().is_adapted = true; });
  EXPECT_NE(server.ask(from_this_machine(post("/v1/training/jobs", fmt::format(R"({{"name":"y",{}}})", kPairs)))).body.find("is adapted"),
            std::string::npos);
}

TEST_F(Training, NamesTheFieldThatIsWrong) {
  std::ofstream(folder.path() + "/theirs") << "";
  const std::pair<std::string, const char*> faults[] = {
      {R"({"name":"x"})", "data"},
      {fmt::format("{{{}}}", kPairs), "name"},
      {fmt::format(R"({{"name":"../x",{}}})", kPairs), "name"},
      {fmt::format(R"({{"name":"theirs",{}}})", kPairs), "name"},
      {fmt::format(R"({{"name":"x","rank":8,{}}})", kPairs), "rank"},
      {fmt::format(R"({{"name":"x","head":"mlp",{}}})", kPairs), "head"},
      {fmt::format(R"({{"name":"x","lora_config":8,{}}})", kPairs), "lora_config"},
      {fmt::format(R"({{"name":"x","lora_config":{{"rank":17}},{}}})", kPairs), "lora_config.rank"},
      {fmt::format(R"({{"name":"x","lora_config":{{"layers":2}},{}}})", kPairs), "lora_config.layers"},
      {fmt::format(R"({{"name":"x","lora_config":{{"alpha":0}},{}}})", kPairs), "lora_config.alpha"},
      {fmt::format(R"({{"name":"x","lora_config":{{"dropout":0.1}},{}}})", kPairs), "lora_config.dropout"},
      {fmt::format(R"({{"name":"x","lora_config":{{"target_modules":[]}},{}}})", kPairs), "lora_config.target_modules"},
      {fmt::format(R"({{"name":"x","lora_config":{{"target_modules":[1]}},{}}})", kPairs), "lora_config.target_modules[0]"},
      {fmt::format(R"({{"name":"x","lora_config":{{"target_modules":["k_proj"]}},{}}})", kPairs), "lora_config"},
      {fmt::format(R"({{"name":"x","epochs":0,{}}})", kPairs), "epochs"},
      {fmt::format(R"({{"name":"x","held_out":0.9,{}}})", kPairs), "held_out"},
      {R"({"name":"x","data":[]})", "data"},
      {R"({"name":"x","data":[{"chosen":"a"}]})", "data[0].rejected"},
      {R"({"name":"x","data":[{"input":"a"}]})", "data[0].score"},
      {R"({"name":"x","data":[{"chosen":"a","rejected":"a"}]})", "data[0]"},
      {R"({"name":"x","data":[{"chosen":"a","rejected":"b"},{"input":"a","score":1}]})", "data[1]"},
      {R"({"name":"x","data":[{"input":7,"score":1}]})", "data[0].input"},
      {R"({"name":"x","data":[{"input":"a","score":"much"}]})", "data[0].score"},
  };
  for (const auto& [body, param] : faults) {
    const Reply reply = server.ask(from_this_machine(post("/v1/training/jobs", body)));
    EXPECT_EQ(reply.status, 400) << body;
    EXPECT_NE(reply.body.find("\"param\":\"" + std::string(param) + "\""), std::string::npos) << body << " " << reply.body;
  }
  EXPECT_EQ(server.ask(from_this_machine(test::get("/v1/training/jobs/train-0"))).status, 404);
}

}  // namespace
}  // namespace braid::test
