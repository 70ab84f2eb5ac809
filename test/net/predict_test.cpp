// POST /v1/predict: what is read, what the network is asked for, and the two forms of a tensor.
#include "net/predict/predict.h"

#include "net/fake_chat.h"
#include "net/predict/tensor_file.h"
#include "net/predict/tensor_json.h"
#include "net/test_server.h"

#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace braid::test {
namespace {

// Gives back what it gets: `y` is twice `x`, `n` the indices.
class Doubler final : public Predictor {
 public:
  std::span<const TensorSignature> inputs() const override { return inputs_; }
  std::span<const TensorSignature> outputs() const override { return outputs_; }

  Result<std::unique_ptr<PendingPrediction>> submit(std::vector<std::optional<Tensor>> given, std::vector<std::size_t> wanted,
                                                    std::int32_t priority) override {
    priorities.push_back(priority);
    if (refusal) return *refusal;
    if (held) return std::make_unique<Held>(*held, left);
    if (huge)
      return std::make_unique<Ready>(
          std::vector<Tensor>{{.type = ElementType::kFloat32, .shape = {1 << 20, 33}, .floats = {}, .integers = {}}});
    if (!given[0]) return invalid_argument("the input 'x' is missing", "inputs.x");
    Tensor doubled = *given[0];
    for (float& value : doubled.floats) value *= 2;
    std::vector<Tensor> outputs;
    for (const std::size_t output : wanted)
      outputs.push_back(output == 0 ? doubled : given[1].value_or(Tensor::zeros(ElementType::kInt64, {1})));
    return std::make_unique<Ready>(std::move(outputs));
  }

  std::optional<Error> refusal;
  std::optional<bool> held;  // predictions never end by themselves; whether they have begun
  bool huge = false;         // outputs are of a shape that no answer has
  int left = 0;              // of these, those that nobody waits for any more
  std::vector<std::int32_t> priorities;

 private:
  class Held final : public PendingPrediction {
   public:
    Held(bool started, int& left) : started_(started), left_(left) {}
    ~Held() override { ++left_; }
    std::optional<Result<std::vector<Tensor>>> try_take() override { return std::exchange(outcome_, std::nullopt); }
    bool started() const override { return started_; }
    void cancel() override {
      outcome_ = Error{ErrorCode::kCancelled, "the request was aborted", ""};
      arrived_.notify();
    }
    Signal& arrived() override { return arrived_; }

   private:
    bool started_;
    int& left_;
    std::optional<Result<std::vector<Tensor>>> outcome_;
    Signal arrived_;
  };

  class Ready final : public PendingPrediction {
   public:
    explicit Ready(std::vector<Tensor> outputs) : outputs_(std::move(outputs)) {}
    std::optional<Result<std::vector<Tensor>>> try_take() override { return outputs_; }
    bool started() const override { return true; }
    void cancel() override {}
    Signal& arrived() override { return arrived_; }

   private:
    std::vector<Tensor> outputs_;
    Signal arrived_;
  };

  std::vector<TensorSignature> inputs_{{.name = "x", .type = ElementType::kFloat32, .shape = {{-1, "batch"}, {2, {}}}, .optional = false},
                                       {.name = "i", .type = ElementType::kInt64, .shape = {{-1, "batch"}}, .optional = true}};
  std::vector<TensorSignature> outputs_{{.name = "y", .type = ElementType::kFloat32, .shape = {{-1, "batch"}, {2, {}}}, .optional = false},
                                        {.name = "n", .type = ElementType::kInt64, .shape = {{-1, "batch"}}, .optional = false}};
};

struct Predict : testing::Test {
  TestServer server;
  Doubler doubler;
  ServedNetwork network{.id = "doubler", .created = 1, .parameters = 0, .revision = "r1", .predictor = &doubler};

  explicit Predict(net::ServerOptions options = test_options()) : server(std::move(options)) {
    server.on_loop([&] { server.status().models = ModelDirectory({&server.model()}, false, {&network}); });
  }
  ~Predict() override {
    server.on_loop([&] { server.status().models = ModelDirectory({&server.model()}); });
  }
};

TEST_F(Predict, AnswersInTheFormThatIsAskedFor) {
  const Reply lists = server.ask(post("/v1/predict", R"({"model":"doubler","inputs":{"x":[[1,2.5],[-3,0]],"i":[7,-8]}})"));
  EXPECT_EQ(lists.status, 200);
  EXPECT_EQ(lists.body, R"({"model":"doubler","revision":"r1","outputs":{"y":[[2,5],[-6,0]],"n":[7,-8]}})");
  const Reply one = server.ask(post("/predict", R"({"model_id":"doubler","inputs":{"x":[[1,2.5]]},"outputs":["y"]})"));
  EXPECT_EQ(one.body, R"({"model":"doubler","revision":"r1","outputs":{"y":[[2,5]]}})");
  const Reply packed = server.ask(post("/v1/predict", R"({"inputs":{"x":{"shape":[1,2],"dtype":"float32","data":"AACAPwAAIEA="}},)"
                                                      R"("outputs":["y"],"encoding_format":"base64"})"));
  EXPECT_EQ(packed.body, R"({"model":"doubler","revision":"r1","outputs":{"y":{"shape":[1,2],"dtype":"float32","data":"AAAAQAAAoEA="}}})");
}

TEST_F(Predict, WhatIsNoNumberIsNull) {
  const Reply reply =
      server.ask(post("/v1/predict", R"({"inputs":{"x":{"shape":[1,2],"dtype":"float32","data":"AADAfwAAgD8="}},"outputs":["y"]})"));
  EXPECT_NE(reply.body.find(R"("y":[[null,2]])"), std::string::npos) << reply.body;
}

TEST_F(Predict, NamesTheFieldThatIsWrong) {
  const std::pair<const char*, const char*> faults[] = {
      {R"({"model":"doubler"})", "inputs"},
      {R"({"inputs":[]})", "inputs"},
      {R"({"inputs":{}})", "inputs.x"},
      {R"({"inputs":{"z":[1]}})", "inputs.z"},
      {R"({"inputs":{"x":1}})", "inputs.x"},
      {R"({"inputs":{"x":[1,2]}})", "inputs.x[0]"},
      {R"({"inputs":{"x":[[1,2],[1]]}})", "inputs.x[1]"},
      {R"({"inputs":{"x":[[1,"2"]]}})", "inputs.x[0][1]"},
      {R"({"inputs":{"x":[[1,null]]}})", "inputs.x[0][1]"},
      {R"({"inputs":{"x":[[1,1e39]]}})", "inputs.x[0][1]"},
      {R"({"inputs":{"x":[[]]}})", "inputs.x[0]"},
      {R"({"inputs":{"x":[[1,[2]]]}})", "inputs.x[0][1]"},
      {R"({"inputs":{"x":[[1,2]],"i":[1.5]}})", "inputs.i[0]"},
      {R"({"inputs":{"x":{"shape":[1,2],"dtype":"float32"}}})", "inputs.x.data"},
      {R"({"inputs":{"x":{"shape":[1,2],"dtype":"float64","data":""}}})", "inputs.x.dtype"},
      {R"({"inputs":{"x":{"shape":[1,0],"dtype":"float32","data":""}}})", "inputs.x.shape[1]"},
      {R"({"inputs":{"x":{"shape":[9000000000000000000,2],"dtype":"float32","data":""}}})", "inputs.x.shape[0]"},
      {R"({"inputs":{"x":{"shape":[65536,65536,65536],"dtype":"float32","data":""}}})", "inputs.x.shape[2]"},
      {R"({"inputs":{"x":{"shape":[1,2],"dtype":"float32","data":"AACAPw=="}}})", "inputs.x.data"},
      {R"({"inputs":{"x":{"shape":[1,2],"dtype":"float32","data":"AACA*wAAIEA="}}})", "inputs.x.data"},
      {R"({"inputs":{"x":{"shape":[1,2],"dtype":"float32","data":"A"}}})", "inputs.x.data"},
      {R"({"inputs":{"x":{"shape":[1,2],"dtype":"float32","data":"","extra":1}}})", "inputs.x.extra"},
      {R"({"inputs":{"x":[[1,2]]},"outputs":[]})", "outputs"},
      {R"({"inputs":{"x":[[1,2]]},"outputs":["z"]})", "outputs[0]"},
      {R"({"inputs":{"x":[[1,2]]},"outputs":["y","y"]})", "outputs[1]"},
      {R"({"inputs":{"x":[[1,2]]},"encoding_format":"hex"})", "encoding_format"},
      {R"({"inputs":{"x":[[1,2]]},"temperature":1})", "temperature"},
      {R"({"inputs":{"x":[[1,2]]},"priority":101})", "priority"},
      {R"({"inputs":{"x":[[1,2]]},"priority":"high"})", "priority"},
      {R"({"inputs":{"x":{"shape":[1,1],"dtype":"int32","data":"AQAAAA=="}}})", "inputs.x.dtype"},
      {R"({"inputs":{"x":[[1,2]],"i":{"shape":[1],"dtype":"int32","data":"AQAAAAAAAAA="}}})", "inputs.i.data"},
      {R"({"model":7,"inputs":{"x":[[1,2]]}})", "model"},
      {R"({"model":"fake-model","inputs":{"x":[[1,2]]}})", "model"},
  };
  for (const auto& [body, param] : faults) {
    const Reply reply = server.ask(post("/v1/predict", body));
    EXPECT_EQ(reply.status, 400) << body;
    EXPECT_NE(reply.body.find("\"param\":\"" + std::string(param) + "\""), std::string::npos) << body << " " << reply.body;
  }
}

TEST_F(Predict, NamesTheNetworksThatThereAre) {
  const Reply reply = server.ask(post("/v1/predict", R"({"model":"tripler","inputs":{}})"));
  EXPECT_EQ(reply.status, 404);
  EXPECT_NE(reply.body.find("the network 'tripler' does not exist; this server has 'doubler'"), std::string::npos) << reply.body;
  server.on_loop([&] { server.status().models = ModelDirectory({&server.model()}); });
  EXPECT_EQ(server.ask(post("/v1/predict", R"({"inputs":{}})")).status, 404);
}

TEST_F(Predict, NetworksAreListedAndGenerateNoText) {
  EXPECT_NE(server.ask(get("/v1/models")).body.find(R"("id":"doubler")"), std::string::npos);
  EXPECT_NE(server.ask(get("/v1/models/doubler")).body.find(R"("revision":"r1")"), std::string::npos);
  const Reply reply = server.ask(post("/v1/completions", R"({"model":"doubler","prompt":"a"})"));
  EXPECT_EQ(reply.status, 400);
  EXPECT_NE(reply.body.find("'doubler' is a network"), std::string::npos) << reply.body;
}

TEST_F(Predict, SaysThatTooManyWait) {
  server.on_loop([&] {
    doubler.refusal = Error{.code = ErrorCode::kOverloaded, .message = "later", .param = {}, .retry_after = std::chrono::seconds(1)};
  });
  const Reply reply = server.ask(post("/v1/predict", R"({"inputs":{"x":[[1,2]]}})"));
  EXPECT_EQ(reply.status, 429);
  EXPECT_EQ(reply.headers.at("retry-after"), "1");
}

TEST(PredictPriority, IsTheClientsOrWhatItMayAskFor) {
  net::access::Rules rules;
  rules.priority = 20;
  rules.best_priority = 10;
  net::ServerOptions options = test_options();
  options.api_keys = {{"a", net::access::digest_of("sk"), rules}};
  TestServer server(options);
  Doubler doubler;
  ServedNetwork network{.id = "doubler", .created = 1, .parameters = 0, .revision = "r1", .predictor = &doubler};
  server.on_loop([&] { server.status().models = ModelDirectory({&server.model()}, false, {&network}); });
  const auto ask = [&](const std::string& more) {
    return server.ask(post("/v1/predict", R"({"inputs":{"x":[[1,2]]})" + more + "}", "Authorization: Bearer sk\r\n"));
  };
  EXPECT_EQ(ask("").status, 200);
  EXPECT_EQ(ask(R"(,"priority":12)").status, 200);
  const Reply refused = ask(R"(,"priority":0)");
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find("a priority of 10 at best, not 0"), std::string::npos) << refused.body;
  server.on_loop([&] {
    EXPECT_EQ(doubler.priorities, (std::vector<std::int32_t>{20, 12}));
    server.status().models = ModelDirectory({&server.model()});
  });
}

TEST(HeldPrediction, EndsWithItsClient) {
  TestServer server;
  Doubler doubler;
  ServedNetwork network{.id = "doubler", .created = 1, .parameters = 0, .revision = "r1", .predictor = &doubler};
  server.on_loop([&] {
    doubler.held = true;
    server.status().models = ModelDirectory({&server.model()}, false, {&network});
  });
  {
    RawClient client = server.connect();
    client.send(post("/v1/predict", R"({"inputs":{"x":[[1,2]]}})"));
    EXPECT_TRUE(server.eventually([&] { return doubler.priorities.size() == 1; }));
    server.on_loop([&] { EXPECT_EQ(doubler.left, 0); });
  }
  EXPECT_TRUE(server.eventually([&] { return doubler.left == 1; }));
  server.on_loop([&] { server.status().models = ModelDirectory({&server.model()}); });
}

TEST(HeldPrediction, EndsWhenItIsAbortedByItsRequestsId) {
  TestServer server;
  Doubler doubler;
  ServedNetwork network{.id = "doubler", .created = 1, .parameters = 0, .revision = "r1", .predictor = &doubler};
  server.on_loop([&] {
    doubler.held = true;
    server.status().models = ModelDirectory({&server.model()}, false, {&network});
  });
  const auto ask_as = [&](const std::string& id) {
    std::size_t before = 0;
    server.on_loop([&] { before = doubler.priorities.size(); });
    RawClient client = server.connect();
    client.send(post("/v1/predict", R"({"inputs":{"x":[[1,2]]}})", "X-Request-Id: " + id + "\r\n"));
    EXPECT_TRUE(server.eventually([&] { return doubler.priorities.size() > before; }));
    return client;
  };
  const auto expect_aborted = [](RawClient client) {
    const Reply reply = client.read_reply();
    EXPECT_EQ(reply.status, 499);
    EXPECT_NE(reply.body.find("the request was aborted"), std::string::npos) << reply.body;
  };
  RawClient one = ask_as("one");
  RawClient two = ask_as("two");
  EXPECT_EQ(server.ask(post("/v1/abort", R"({"id":"three"})")).status, 404);
  EXPECT_EQ(server.ask(post("/v1/abort", R"({"id":"one"})")).status, 200);
  expect_aborted(std::move(one));
  EXPECT_NE(server.ask(from_this_machine(post("/abort_requests", R"({"request_ids":["two","one"]})"))).body.find(R"("aborted":1)"),
            std::string::npos);
  expect_aborted(std::move(two));
  RawClient three = ask_as("three");
  RawClient again = ask_as("three");
  EXPECT_NE(server.ask(from_this_machine(post("/abort_requests", R"({"all":true})"))).body.find(R"("aborted":2)"), std::string::npos);
  expect_aborted(std::move(three));
  expect_aborted(std::move(again));
  EXPECT_EQ(server.ask(post("/v1/abort", R"({"id":"three"})")).status, 404);
  server.on_loop([&] { server.status().models = ModelDirectory({&server.model()}); });
}

// Of few inputs a network may make more numbers than there is memory for as text.
TEST_F(Predict, HasAnAnswerOfBoundedLength) {
  server.on_loop([&] { doubler.huge = true; });
  const Reply reply = server.ask(post("/v1/predict", R"({"inputs":{"x":[[1,2]]},"outputs":["y"]})"));
  EXPECT_EQ(reply.status, 400);
  EXPECT_NE(reply.body.find("the outputs have 34603008 numbers"), std::string::npos) << reply.body;
  EXPECT_NE(reply.body.find(R"("param":"outputs")"), std::string::npos) << reply.body;
}

// Only for what never ends by itself: a busy machine takes that long for any answer.
struct PredictInAHurry : Predict {
  static net::ServerOptions options() {
    net::ServerOptions options = test_options();
    options.prediction_timeouts = {.queue = std::chrono::milliseconds(20), .total = std::chrono::milliseconds(60)};
    return options;
  }
  PredictInAHurry() : Predict(options()) {}
};

TEST_F(PredictInAHurry, EndsAtTheDeadlineOfItsClass) {
  constexpr const char* kDoubled = R"({"inputs":{"x":[[1,2]]}})";
  server.on_loop([&] { doubler.held = false; });
  const Reply queued = server.ask(post("/v1/predict", kDoubled));
  EXPECT_EQ(queued.status, 429);
  EXPECT_NE(queued.body.find("waited in the queue for more than 20ms"), std::string::npos) << queued.body;
  server.on_loop([&] { doubler.held = true; });
  const Reply late = server.ask(post("/v1/predict", kDoubled));
  EXPECT_EQ(late.status, 504);
  EXPECT_NE(late.body.find("did not end within 60ms"), std::string::npos) << late.body;
  EXPECT_TRUE(server.eventually([&] { return doubler.left == 2; })) << "nobody waits for them";
}

TEST_F(Predict, LongBodiesAreReadAndWrittenTheSame) {
  std::string rows;
  std::string expected;
  for (int i = 0; i < 12'000; ++i) {
    rows += fmt::format("{}[{},{}]", i > 0 ? "," : "", i % 100, i % 7);
    expected += fmt::format("{}[{},{}]", i > 0 ? "," : "", i % 100 * 2, i % 7 * 2);
  }
  const Reply reply = server.ask(post("/v1/predict", R"({"outputs":["y"],"inputs":{"x":[)" + rows + "]}}"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, R"({"model":"doubler","revision":"r1","outputs":{"y":[)" + expected + "]}}");
}

TEST(TensorJson, WhatIsWrittenIsReadAgain) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    TensorSignature signature{
        .name = "t", .type = round % 2 == 0 ? ElementType::kFloat32 : ElementType::kInt64, .shape = {}, .optional = false};
    TensorShape shape;
    for (std::size_t i = 0; i < 1 + random() % 4; ++i) shape.push_back(1 + static_cast<std::int64_t>(random() % 5));
    signature.shape.resize(shape.size());
    Tensor tensor = Tensor::zeros(signature.type, shape);
    for (float& value : tensor.floats) value = std::ldexp(static_cast<float>(random()), static_cast<int>(random() % 60) - 60);
    for (std::int64_t& value : tensor.integers) value = static_cast<std::int64_t>(random()) << random() % 32;
    for (const bool packed : {false, true}) {
      std::string text = "{\"t\":";
      packed ? net::predict::append_packed(text, tensor) : net::predict::append_lists(text, tensor);
      text += '}';
      const Value document = net::json::parse_object(text).value();
      const Tensor again = net::predict::read_tensor(*document.find("t"), signature, "t").value();
      EXPECT_EQ(again.shape, tensor.shape);
      EXPECT_EQ(again.floats, tensor.floats);
      EXPECT_EQ(again.integers, tensor.integers);
    }
  }
}

TEST(TensorJson, ShortIntegersBecomeLongOnes) {
  const TensorSignature signature{.name = "i", .type = ElementType::kInt64, .shape = {{-1, "batch"}}, .optional = false};
  std::string text = R"({"i":{"shape":[3],"dtype":"int32","data":"AQAAAP////8AAACA"}})";
  const Value document = net::json::parse_object(text).value();
  const Tensor read = net::predict::read_tensor(*document.find("i"), signature, "i").value();
  EXPECT_EQ(read.type, ElementType::kInt64);
  EXPECT_EQ(read.integers, (std::vector<std::int64_t>{1, -1, std::numeric_limits<std::int32_t>::min()}));
}

// A body with its header and so many bytes of data, all of which are 1.
std::string tensor_body(const std::string& header, std::size_t bytes) {
  std::string body(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) body[i] = static_cast<char>(header.size() >> 8 * i);
  return body + header + std::string(bytes, '\1');
}

TEST(TensorFile, ShortIntegersBecomeLongOnes) {
  const auto file = net::predict::read_tensor_file(tensor_body(R"({"i":{"dtype":"I32","shape":[2],"data_offsets":[0,8]}})", 8)).value();
  EXPECT_EQ(file.tensors.at(0).second.type, ElementType::kInt64);
  EXPECT_EQ(file.tensors.at(0).second.integers, (std::vector<std::int64_t>{0x01010101, 0x01010101}));
  const auto wrong = net::predict::read_tensor_file(tensor_body(R"({"i":{"dtype":"I32","shape":[2],"data_offsets":[0,16]}})", 16));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().param, "inputs.i.data_offsets");
}

// Or a small body would be a large one once its tensors are copied.
TEST(TensorFile, TensorsDoNotOverlap) {
  const auto body_of = [](const std::string& offsets, std::size_t bytes) {
    const std::string header =
        R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":)" + offsets + "}}";
    return tensor_body(header, bytes);
  };
  EXPECT_TRUE(net::predict::read_tensor_file(body_of("[8,16]", 16)));
  const auto overlapping = net::predict::read_tensor_file(body_of("[4,12]", 12));
  ASSERT_FALSE(overlapping);
  EXPECT_EQ(overlapping.error().param, "inputs.b.data_offsets");
}

}  // namespace
}  // namespace braid::test
