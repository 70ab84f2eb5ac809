// Heads fitted to preferences and scores: the numbers, and jobs from their body to the adapter that comes out.
#include "braid/adapters.h"
#include "net/json/parse.h"
#include "net/predict/tensor_file.h"
#include "net/test_server.h"
#include "net/training/adapter_folder.h"
#include "net/training/head_fit.h"
#include "support/folder.h"

#include <cmath>
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <random>
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
