// POST /v1/rl/act and /v1/rl/rollout: what is read, what the policy is asked for, sessions, and what a learner is told.
#include "braid/adapters.h"
#include "net/fake_constraints.h"
#include "net/json/parse.h"
#include "net/predict/tensor_file.h"
#include "net/rl/sessions.h"
#include "net/test_server.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace braid::test {
namespace {

// Acts by the sum of a row of `x` and its state, which it counts up; remembers the last draw.
class Counter final : public Predictor {
 public:
  std::span<const TensorSignature> inputs() const override { return inputs_; }
  std::span<const TensorSignature> outputs() const override { return outputs_; }
  const PolicyForm* policy() const override { return is_policy ? &form_ : nullptr; }

  Result<std::unique_ptr<PendingPrediction>> submit(std::vector<std::optional<Tensor>>, std::vector<std::size_t>, std::int32_t) override {
    return invalid_argument("only acts");
  }

  Result<std::unique_ptr<PendingPrediction>> act(std::vector<std::optional<Tensor>> given, ActionDraw draw,
                                                 std::int32_t priority) override {
    if (!given[0]) return invalid_argument("the input 'x' is missing", "inputs.x");
    last = draw;
    last_priority = priority;
    ++acts;
    if (huge) {
      Tensor actions{.type = ElementType::kInt64, .shape = {1 << 20, 33}, .floats = {}, .integers = {}};
      const Tensor one = Tensor::zeros(ElementType::kFloat32, {1});
      return std::make_unique<Ready>(std::vector<Tensor>{std::move(actions), one, one, one});
    }
    const std::int64_t rows = given[0]->shape[0];
    Tensor actions = Tensor::zeros(ElementType::kInt64, {rows});
    Tensor log_probabilities = Tensor::zeros(ElementType::kFloat32, {rows});
    Tensor values = Tensor::zeros(ElementType::kFloat32, {rows});
    Tensor state = given[1].value_or(Tensor::zeros(ElementType::kFloat32, {rows}));
    for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
      actions.integers[row] = static_cast<std::int64_t>(given[0]->floats[2 * row] + given[0]->floats[2 * row + 1] + state.floats[row]);
      log_probabilities.floats[row] = -0.5F;
      values.floats[row] = 0.25F;
      state.floats[row] += 1;
    }
    return std::make_unique<Ready>(std::vector<Tensor>{actions, log_probabilities, values, state});
  }

  bool is_policy = true;
  bool huge = false;  // actions are of a shape that no answer has
  ActionDraw last;
  std::int32_t last_priority = 0;
  int acts = 0;

 private:
  class Ready final : public PendingPrediction {
   public:
    explicit Ready(std::vector<Tensor> outputs) : outputs_(std::move(outputs)) {}
    std::optional<Result<std::vector<Tensor>>> try_take() override { return outputs_; }
    void cancel() override {}
    Signal& arrived() override { return arrived_; }

   private:
    std::vector<Tensor> outputs_;
    Signal arrived_;
  };

  std::vector<TensorSignature> inputs_{{.name = "x", .type = ElementType::kFloat32, .shape = {{-1, "batch"}, {2, {}}}, .optional = false},
                                       {.name = "s", .type = ElementType::kFloat32, .shape = {{-1, "batch"}}, .optional = true}};
  std::vector<TensorSignature> outputs_{
      {.name = "logits", .type = ElementType::kFloat32, .shape = {{-1, "batch"}, {2, {}}}, .optional = false},
      {.name = "v", .type = ElementType::kFloat32, .shape = {{-1, "batch"}}, .optional = false},
      {.name = "t", .type = ElementType::kFloat32, .shape = {{-1, "batch"}}, .optional = false}};
  PolicyForm form_{.value = 1, .states = {{1, 2}}};
};

struct Acting : testing::Test {
  TestServer server;
  Counter counter;
  FakeCompiler compiler;
  ServedNetwork network{.id = "counter", .created = 1, .parameters = 0, .revision = "r1", .predictor = &counter};

  Acting() {
    server.on_loop([&] {
      server.model().constraints = &compiler;
      server.status().models = ModelDirectory({&server.model()}, false, {&network});
    });
  }
  ~Acting() override {
    server.on_loop([&] { server.status().models = ModelDirectory({&server.model()}); });
  }

  std::string act(const std::string& body, int status = 200) {
    const Reply reply = server.ask(post("/v1/rl/act", body));
    EXPECT_EQ(reply.status, status) << body << " " << reply.body;
    return reply.body;
  }
};

TEST_F(Acting, AnswersWithActionsTheirLogarithmsValuesAndStates) {
  EXPECT_EQ(act(R"({"model_id":"counter","observations":[[1,2],[3,4]],"seed":-5,"step":2})"),
            R"({"object":"rl.action","model":"counter","revision":"r1","actions":[3,7],"action_log_probs":[-0.5,-0.5],)"
            R"("value_estimates":[0.25,0.25],"new_hidden_states":{"s":[1,1]},"seed":-5,"step":2})");
  EXPECT_EQ(counter.last.seeds, std::vector<std::uint64_t>{static_cast<std::uint64_t>(-5)});
  EXPECT_EQ(counter.last.step, 2);
  EXPECT_FALSE(counter.last.deterministic);
  EXPECT_EQ(counter.last_priority, -10);  // somebody waits for it to go on
  EXPECT_EQ(
      act(R"({"model":"counter","observations":{"x":[[1,2]]},"hidden_states":{"s":[10]},"priority":5,"deterministic":true,"seed":[7],)"
          R"("encoding_format":"base64"})"),
      R"({"object":"rl.action","model":"counter","revision":"r1","actions":{"shape":[1],"dtype":"int64","data":"DQAAAAAAAAA="},)"
      R"("action_log_probs":{"shape":[1],"dtype":"float32","data":"AAAAvw=="},)"
      R"("value_estimates":{"shape":[1],"dtype":"float32","data":"AACAPg=="},)"
      R"("new_hidden_states":{"s":{"shape":[1],"dtype":"float32","data":"AAAwQQ=="}},"seed":7,"step":0})");
  EXPECT_TRUE(counter.last.deterministic);
  EXPECT_EQ(counter.last_priority, 5);
  const std::string packed = act(R"({"observations":{"shape":[1,2],"dtype":"float32","data":"AACAPwAAAEA="},"seed":1})");
  EXPECT_NE(packed.find(R"("actions":[3])"), std::string::npos) << packed;
}

TEST_F(Acting, ChoosesASeedThatCanBeRepeated) {
  std::string body = act(R"({"model":"counter","observations":[[1,2]]})");
  const Value answer = net::json::parse_object(body).value();
  EXPECT_EQ(static_cast<std::uint64_t>(*answer.find("seed")->get_if<std::int64_t>()), counter.last.seeds.front());
  EXPECT_LT(counter.last.seeds.front(), std::uint64_t{1} << 53U);
}

TEST_F(Acting, TakesAndGivesTensorFiles) {
  Tensor x = Tensor::zeros(ElementType::kFloat32, {1, 2});
  x.floats = {4, 5};
  const std::vector<std::pair<std::string, std::string>> metadata = {{"model_id", "counter"}, {"seed", "12"}, {"deterministic", "true"}};
  const std::vector<net::predict::NamedTensor> tensors = {{"x", &x}};
  const Reply reply = server.ask(post("/v1/rl/act", net::predict::write_tensor_file(metadata, tensors)));
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.headers.at("content-type"), "application/octet-stream");
  const auto file = net::predict::read_tensor_file(reply.body).value();
  EXPECT_EQ(*file.find_metadata("revision"), "r1");
  EXPECT_EQ(*file.find_metadata("seed"), "12");
  ASSERT_EQ(file.tensors.size(), 4U);
  EXPECT_EQ(file.tensors[0].first, "actions");
  EXPECT_EQ(file.tensors[0].second.integers, std::vector<std::int64_t>{9});
  EXPECT_EQ(file.tensors[3].first, "new_hidden_states.s");
  EXPECT_TRUE(counter.last.deterministic);
  const auto refused = [&](std::vector<std::pair<std::string, std::string>> names) {
    const Reply refusal = server.ask(post("/v1/rl/act", net::predict::write_tensor_file(names, tensors)));
    EXPECT_EQ(refusal.status, 400);
    return refusal.body;
  };
  EXPECT_NE(refused({{"model", "fake-model"}}).find("'fake-model' is no network, which tensors as a body are for: a language model takes"),
            std::string::npos);
  EXPECT_NE(refused({{"model", "fake-model"}, {"model_id", "counter"}}).find("which one?"), std::string::npos);
}

TEST_F(Acting, SessionsKeepStatesSeedAndStep) {
  const std::string body = R"({"model":"counter","observations":[[0,0]],"session":"a")";
  const std::string first = act(body + R"(,"seed":9})");
  EXPECT_NE(first.find(R"("actions":[0])"), std::string::npos);
  EXPECT_NE(first.find(R"("new_hidden_states":null,"seed":9,"step":0)"), std::string::npos) << first;
  const std::string second = act(body + "}");
  EXPECT_NE(second.find(R"("actions":[1])"), std::string::npos);
  EXPECT_NE(second.find(R"("seed":9,"step":1)"), std::string::npos) << second;
  EXPECT_NE(act(R"({"model":"counter","observations":[[0,0]],"session":"b","seed":1})").find(R"("actions":[0])"), std::string::npos);
  const std::string reset = act(body + R"(,"session_reset":true})");
  EXPECT_NE(reset.find(R"("actions":[0])"), std::string::npos);
  EXPECT_NE(reset.find(R"("step":0)"), std::string::npos);
  EXPECT_NE(act(body + R"(,"session_end":true})").find(R"("actions":[1])"), std::string::npos);
  EXPECT_NE(act(body + "}").find(R"("actions":[0])"), std::string::npos);
}

TEST_F(Acting, HasAnAnswerOfBoundedLengthAndASessionStaysAsItWas) {
  const std::string body = R"({"model":"counter","observations":[[0,0]],"session":"a"})";
  act(body);
  server.on_loop([&] { counter.huge = true; });
  for (const std::string& asked : {body, std::string(R"({"model":"counter","observations":[[0,0]]})")}) {
    const std::string refusal = act(asked, 400);
    EXPECT_NE(refusal.find(asked == body ? "the outputs have 34603010 numbers" : "the outputs have 34603011 numbers"), std::string::npos)
        << refusal;
    EXPECT_NE(refusal.find(R"("param":"observations")"), std::string::npos) << refusal;
  }
  server.on_loop([&] { counter.huge = false; });
  const std::string next = act(body);
  EXPECT_NE(next.find(R"("actions":[1])"), std::string::npos) << next;
  EXPECT_NE(next.find(R"("step":1})"), std::string::npos) << next;
}

TEST_F(Acting, NamesTheFieldThatIsWrong) {
  const std::pair<const char*, const char*> faults[] = {
      {R"({"model":"counter"})", "observations"},
      {R"({"model":"fake-model","model_id":"counter","observations":[[1,2]]})", "model_id"},
      {R"({"model":"counter","observations":[[1]],"state":1})", "state"},
      {R"({"model":"counter","observations":{"y":[[1,2]]}})", "observations.y"},
      {R"({"model":"counter","observations":{"s":[1]}})", "observations.s"},
      {R"({"model":"counter","observations":[[1,"2"]]})", "observations[0][1]"},
      {R"({"model":"counter","observations":{"x":[[1,2]]},"hidden_states":{"x":[[1,2]]}})", "hidden_states.x"},
      {R"({"model":"counter","observations":[[1,2]],"hidden_states":[1]})", "hidden_states"},
      {R"({"model":"counter","observations":[[1,2]],"seed":1.5})", "seed"},
      {R"({"model":"counter","observations":[[1,2]],"seed":[]})", "seed"},
      {R"({"model":"counter","observations":[[1,2]],"seed":[1,"2"]})", "seed[1]"},
      {R"({"model":"counter","observations":[[1,2]],"step":-1})", "step"},
      {R"({"model":"counter","observations":[[1,2]],"deterministic":1})", "deterministic"},
      {R"({"model":"counter","observations":[[1,2]],"session":""})", "session"},
      {R"({"model":"counter","observations":[[1,2]],"session":"a","session_ttl":0})", "session_ttl"},
      {R"({"model":"counter","observations":[[1,2]],"session":"a","seed":[1,2]})", "seed"},
      {R"({"model":"counter","observations":[[1,2]],"session_end":true})", "session_end"},
      {R"({"model":"counter","observations":[[1,2]],"encoding_format":"hex"})", "encoding_format"},
  };
  for (const auto& [body, param] : faults) {
    const std::string answer = act(body, 400);
    EXPECT_NE(answer.find("\"param\":\"" + std::string(param) + "\""), std::string::npos) << body << " " << answer;
  }
  server.on_loop([&] { counter.is_policy = false; });
  EXPECT_NE(act(R"({"model":"counter","observations":[[1,2]]})", 400).find("is no policy"), std::string::npos);
  EXPECT_EQ(server.ask(post("/v1/rl/act", R"({"model":"nobody","observations":["a"]})")).status, 404);
}

TEST_F(Acting, StepsAreCounted) {
  act(R"({"model":"counter","observations":[[1,2],[3,4]]})");
  EXPECT_NE(server.ask(get("/metrics")).body.find("braid_policy_steps_total 2"), std::string::npos);
}

// What the engine says to any request: "Hi" with log-probabilities.
void speak(FakeEngine& engine) {
  engine.script = [](const GenerationRequest&) {
    Finish finish;
    finish.reason = FinishReason::kLength;
    finish.usage.completion_tokens = 2;
    return std::vector<TokenEvent>{Token{'H', -0.25F, {{}, -0.125F}}, Token{'i', -1.5F, {{}, -1.0F}}, finish};
  };
}

TEST_F(Acting, ALanguageModelAnswersObservationsWithTexts) {
  server.on_loop([&] { speak(server.engine()); });
  const std::string answer = act(R"({"model_id":"fake-model","observations":["go",[7,8],[{"role":"user","content":"x"}]],"seed":3,)"
                                 R"("actions":["Hi","Ho"],"deterministic":true,"max_tokens":2})");
  EXPECT_NE(answer.find(R"("actions":["Hi","Hi","Hi"])"), std::string::npos) << answer;
  EXPECT_NE(answer.find(R"("action_token_ids":[[72,105],[72,105],[72,105]],"action_log_probs":[-1.125,-1.125,-1.125],)"
                        R"("token_log_probs":[[-0.125,-1],[-0.125,-1],[-0.125,-1]],)"
                        R"("model_log_probs":[[-0.25,-1.5],[-0.25,-1.5],[-0.25,-1.5]],"value_estimates":null)"),
            std::string::npos)
      << answer;
  server.on_loop([&] {
    const auto& submitted = server.engine().submitted;
    ASSERT_EQ(submitted.size(), 3U);
    EXPECT_EQ(std::string(submitted[0].prompt.begin(), submitted[0].prompt.end()), "user:go;assistant:");
    EXPECT_EQ(submitted[1].prompt, (std::vector<TokenId>{7, 8}));
    EXPECT_EQ(std::string(submitted[2].prompt.begin(), submitted[2].prompt.end()), "user:x;assistant:");
    EXPECT_EQ(submitted[0].sampling.temperature, 0.0F);
    EXPECT_EQ(submitted[0].priority, -10);
    EXPECT_NE(submitted[0].constraint, nullptr);
  });
  for (const auto& [body, param] : {std::pair{R"({"model":"fake-model"})", "observations"},
                                    {R"({"model":"fake-model","observations":"go"})", "observations"},
                                    {R"({"model":"fake-model","observations":[5]})", "observations[0]"},
                                    {R"({"model":"fake-model","observations":["a"],"session":"b"})", "session"},
                                    {R"({"model":"fake-model","observations":["a"],"session_reset":true})", "session_reset"},
                                    {R"({"model":"fake-model","observations":["a"],"prompt":"b"})", "prompt"},
                                    {R"({"model":"fake-model","observations":["a"],"actions":[]})", "actions"},
                                    {R"({"model":"fake-model","observations":["a"],"actions":"b"})", "actions"},
                                    {R"({"model":"fake-model","observations":["a"],"n":2})", "n"}}) {
    const std::string refused = act(body, 400);
    EXPECT_NE(refused.find("\"param\":\"" + std::string(param) + "\""), std::string::npos) << body << " " << refused;
  }
  EXPECT_NE(act(R"({"model":"fake-model","observations":[]})", 400).find("not an empty array"), std::string::npos);
}

TEST_F(Acting, ARolloutHasGroupsOfCompletionsInTokens) {
  server.on_loop([&] { speak(server.engine()); });
  const Reply reply = server.ask(post("/v1/rl/rollout", R"({"model":"fake-model","prompt":[[7,8],[9]],"n":2,"max_tokens":2,"seed":1})"));
  ASSERT_EQ(reply.status, 200) << reply.body;
  const std::string completion =
      R"("text":"Hi","token_ids":[72,105],"logprobs":[-0.25,-1.5],"sampled_logprobs":[-0.125,-1],"revisions":[{"revision":"","begin":0,"end":2}],)"
      R"("finish_reason":"length","stop_reason":null,"matched_stop":null})";
  const std::string group = fmt::format(R"("completions":[{{"index":0,{0},{{"index":1,{0}]}})", completion);
  EXPECT_NE(reply.body.find(fmt::format(R"("groups":[{{"prompt_token_ids":[7,8],{0},{{"prompt_token_ids":[9],{0}])", group)),
            std::string::npos)
      << reply.body;
  for (const auto& [body, param] : {std::pair{R"({"model":"fake-model"})", "prompt"},
                                    {R"({"prompt":"a","stream":true})", "stream"},
                                    {R"({"prompt":"a","best_of":3})", "best_of"},
                                    {R"({"prompt":"a","echo":true})", "echo"}}) {
    const Reply refused = server.ask(post("/v1/rl/rollout", body));
    EXPECT_EQ(refused.status, 400);
    EXPECT_NE(refused.body.find("\"param\":\"" + std::string(param) + "\""), std::string::npos) << refused.body;
  }
}

TEST_F(Acting, ARolloutIsReviewedByAReferenceAndAValueHead) {
  server.on_loop([&] {
    server.engine().script = answer_or_review;
    server.model().classes.labels = {"LABEL_0"};
  });
  const Reply reply =
      server.ask(post("/v1/rl/rollout", R"({"model":"fake-model","prompt":[[7,8,9],[6]],"n":1,"max_tokens":2,"cache_salt":"s",)"
                                        R"("reference":"fake-model","return_values":true,"return_hidden":[0,-1,5]})"));
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_NE(reply.body.find(R"("reference_logprobs":[-3,-4],"values":[2,3,4],)"
                            R"("hidden":[{"position":0,"vector":[3,30]},{"position":1,"vector":[4,40]}])"),
            std::string::npos)
      << reply.body;
  EXPECT_NE(reply.body.find(R"("reference_logprobs":[-1,-2],"values":[0,1,2])"), std::string::npos) << reply.body;
  server.on_loop([&] {
    const auto& submitted = server.engine().submitted;
    ASSERT_EQ(submitted.size(), 8U);  // two answers, three reviews of each
    EXPECT_EQ(submitted[2].prompt, (std::vector<TokenId>{7, 8, 9, 'H', 'i'}));
    EXPECT_EQ(submitted[2].cache_salt, "s");
    EXPECT_EQ(submitted[7].prompt, (std::vector<TokenId>{6, 'H', 'i'}));
  });
  for (const auto& [body, param] : {std::pair{R"({"prompt":"a","reference":"nobody"})", "model"},
                                    {R"({"prompt":"a","reference":1})", "reference"},
                                    {R"({"prompt":"a","return_hidden":["a"]})", "return_hidden[0]"},
                                    {R"({"prompt":"a","return_hidden":true,"max_tokens":0})", "max_tokens"}}) {
    const Reply refused = server.ask(post("/v1/rl/rollout", body));
    EXPECT_GE(refused.status, 400);
    EXPECT_NE(refused.body.find("\"param\":\"" + std::string(param) + "\""), std::string::npos) << refused.body;
  }
  server.on_loop([&] { server.model().classes.labels.clear(); });
  EXPECT_NE(server.ask(post("/v1/rl/rollout", R"({"prompt":"a","return_values":true})")).body.find("return_values"), std::string::npos);
}

// What was accepted is not refused half-way.
TEST_F(Acting, ReviewsAreTakenWhereTheQueueIsFull) {
  server.on_loop([&] {
    server.engine().script = answer_or_review;
    server.engine().room = 1;
  });
  const Reply reply =
      server.ask(post("/v1/rl/rollout", R"({"prompt":[7,8],"max_tokens":2,"reference":"fake-model","return_hidden":true})"));
  EXPECT_EQ(reply.status, 200) << reply.body;
  server.on_loop([&] {
    const auto& submitted = server.engine().submitted;
    ASSERT_EQ(submitted.size(), 3U);
    EXPECT_EQ(submitted[0].reservation, nullptr);
    for (std::size_t i = 1; i < 3; ++i) EXPECT_EQ(submitted[i].reservation, server.engine().reserved);
  });
}

// Has newer weights for whoever asks.
class NewerBase final : public Adapters {
 public:
  std::vector<AdapterFacts> list() const override { return {}; }
  bool has(std::string_view) const override { return false; }
  bool had_any() const override { return false; }
  Result<std::shared_ptr<const ServedModel>> apply(std::shared_ptr<const ServedModel> base, std::span<const AdapterChoice>) override {
    return base;
  }
  Result<AdapterUse> current(const AdapterUse& applied) override {
    if (is_full) return Error{ErrorCode::kOverloaded, "too many adapters", ""};
    return AdapterUse{applied.index + 10, "newer"};
  }
  boost::asio::awaitable<Result<AdapterFacts>> load(std::string, WeightSource, std::optional<UpdateMode>) override {
    co_return AdapterFacts();
  }
  Result<void> unload(std::string_view) override { return {}; }

  bool is_full = false;
};

TEST_F(Acting, AnswersAndReviewsUseTheWeightsThatAreCurrentWhenTheyAreSubmitted) {
  NewerBase adapters;
  server.on_loop([&] {
    server.engine().script = answer_or_review;
    server.model().adapters = &adapters;
  });
  const std::string body = R"({"prompt":[7,8],"max_tokens":2,"reference":"fake-model","return_hidden":true})";
  EXPECT_EQ(server.ask(post("/v1/rl/rollout", body)).status, 200);
  server.on_loop([&] {
    ASSERT_EQ(server.engine().submitted.size(), 3U);
    for (const GenerationRequest& request : server.engine().submitted) EXPECT_EQ(request.adapter.index, 10U);
    adapters.is_full = true;
  });
  EXPECT_EQ(server.ask(post("/v1/rl/rollout", body)).status, 429);
  server.on_loop([&] {
    EXPECT_EQ(server.engine().submitted.size(), 3U);
    server.model().adapters = nullptr;
  });
}

TEST_F(Acting, AnAnswerTellsTheFingerprintOfTheWeightsThatItBeginsWith) {
  NewerBase adapters;
  for (const char* older : {"", "older"}) {
    server.on_loop([&] {
      server.model().adapter.revision = older;
      server.model().fingerprint = *older == '\0' ? "loaded" : "loaded-older";
      server.model().adapters = &adapters;
    });
    const Reply reply = server.ask(post("/v1/completions", R"({"prompt":"a"})"));
    EXPECT_NE(reply.body.find(R"("system_fingerprint":"loaded-newer")"), std::string::npos) << reply.body;
  }
  server.on_loop([&] {
    server.model().adapter = {};
    server.model().adapters = nullptr;
  });
}

TEST_F(Acting, ARolloutTellsWhichRevisionMadeWhichTokens) {
  server.on_loop([&] {
    server.model().fingerprint = "loaded";
    server.engine().script = [&](const GenerationRequest& request) {
      EXPECT_TRUE(request.tells_revisions);
      const auto token = [](char c, std::optional<std::string> revision) {
        return Token{c, -1.0F, {{}, -0.5F, revision ? std::make_shared<const std::string>(*revision) : nullptr}};
      };
      Finish finish;
      finish.reason = FinishReason::kLength;
      return std::vector<TokenEvent>{token('a', ""), token('b', {}), token('c', "r2"), token('d', "r3"), token('e', {}), finish};
    };
  });
  const Reply reply = server.ask(post("/v1/rl/rollout", R"({"prompt":[7],"max_tokens":5})"));
  EXPECT_NE(reply.body.find(R"("revisions":[{"revision":"loaded","begin":0,"end":2},{"revision":"r2","begin":2,"end":3},)"
                            R"({"revision":"r3","begin":3,"end":5}])"),
            std::string::npos)
      << reply.body;
  EXPECT_NE(reply.body.find(R"("model":"fake-model","revision":"r3")"), std::string::npos) << reply.body;
  EXPECT_NE(act(R"({"model":"fake-model","observations":[[7]]})").find(R"("revision":"r3")"), std::string::npos);
}

TEST_F(Acting, AReviewThatFailsIsTheAnswersFailure) {
  server.on_loop([&] {
    server.engine().script = [](const GenerationRequest& request) {
      Finish finish;
      finish.reason = request.stop.max_tokens > 0 ? FinishReason::kLength : FinishReason::kError;
      if (request.stop.max_tokens > 0) return std::vector<TokenEvent>{Token{'H', -0.25F, {}}, finish};
      finish.error = Error{ErrorCode::kInternal, "the model failed", ""};
      return std::vector<TokenEvent>{finish};
    };
  });
  const Reply reply = server.ask(post("/v1/rl/rollout", R"({"prompt":"a","reference":"fake-model"})"));
  EXPECT_EQ(reply.status, 500);
  EXPECT_NE(reply.body.find("the model failed"), std::string::npos) << reply.body;
}

using net::rl::Sessions;
using std::chrono::seconds;

TEST(PolicySessions, AreForgottenWhenNobodyUsesThemForTheirTime) {
  Sessions sessions;
  const auto now = Sessions::Clock::time_point(seconds(1000));
  {
    auto turn = sessions.begin("me", "a", "p", now).value();
    EXPECT_TRUE(turn.keep({.states = {}, .seed = 5, .step = 1}, seconds(10), now));
  }
  EXPECT_EQ(sessions.begin("me", "a", "p", now + seconds(9)).value().episode().step, 1);
  EXPECT_EQ(sessions.begin("me", "a", "p", now + seconds(10)).value().episode().step, 0);
  EXPECT_TRUE(sessions.begin("me", "b", "p", now + seconds(10)));
  EXPECT_EQ(sessions.size(), 1U);  // "a" took no step
}

TEST(PolicySessions, HaveAnOwnerAndAPolicy) {
  Sessions sessions;
  const auto now = Sessions::Clock::time_point();
  {
    auto turn = sessions.begin("me", "a", "p", now).value();
    EXPECT_TRUE(turn.keep({.states = {}, .seed = 5, .step = 1}, seconds(10), now));
    EXPECT_EQ(sessions.begin("me", "a", "p", now).error().param, "session");  // one step after the other
  }
  EXPECT_EQ(sessions.begin("you", "a", "p", now).value().episode().step, 0);
  EXPECT_EQ(sessions.begin("me", "a", "p", now).value().episode().step, 1);
  EXPECT_EQ(sessions.begin("me", "a", "q", now).value().episode().step, 0);
}

TEST(PolicySessions, AreRefusedBeyondTheirNumberAndTheirBytes) {
  Sessions sessions(2, 16);
  const auto now = Sessions::Clock::time_point();
  const auto step = [&](const char* name, std::int64_t values) {
    auto turn = sessions.begin("me", name, "p", now);
    if (!turn) return turn.error().code;
    const auto kept = turn->keep({.states = {Tensor::zeros(ElementType::kFloat32, {values})}, .seed = 0, .step = 1}, seconds(10), now);
    return kept ? ErrorCode::kInternal : kept.error().code;
  };
  EXPECT_EQ(step("a", 3), ErrorCode::kInternal);  // it was kept
  EXPECT_EQ(step("b", 2), ErrorCode::kOverloaded);
  EXPECT_EQ(step("b", 1), ErrorCode::kInternal);
  EXPECT_EQ(step("c", 0), ErrorCode::kOverloaded);
  EXPECT_EQ(step("a", 2), ErrorCode::kInternal);
  EXPECT_EQ(step("b", 2), ErrorCode::kInternal);
  {
    auto turn = sessions.begin("me", "a", "p", now).value();
    turn.end();
  }
  EXPECT_EQ(step("c", 2), ErrorCode::kInternal);
}

}  // namespace
}  // namespace braid::test
