// Predictions of many clients on one strand: each gets its own answer, whoever else asks or leaves.
#include "app/serving/network_predictor.h"

#include "files/safetensors.h"
#include "kernels/select.h"
#include "model/networks/action_choice.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <optional>
#include <random>
#include <semaphore>
#include <string>

namespace braid::app {
namespace {

namespace asio = boost::asio;

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::shared_ptr<const model::Network> load(const std::string& name) {
  const std::string folder = BRAID_SOURCE_DIR "/test/model/reference/networks/" + name;
  const std::string bytes = read(folder + "/model.safetensors");
  return std::make_shared<const model::Network>(model::Network::load(read(folder + "/config.json"),
                                                                     files::parse_safetensors(std::as_bytes(std::span(bytes))).value(),
                                                                     kernels::best_kernel_table())
                                                    .value());
}

Tensor observation(std::mt19937& random) {
  Tensor tensor = Tensor::zeros(ElementType::kFloat32, {1 + static_cast<std::int64_t>(random() % 9), 7});
  std::normal_distribution<float> normal;
  for (float& value : tensor.floats) value = normal(random);
  return tensor;
}

// A language model's steps, each of several layers, which a test lets go on one by one.
struct Layers final : step::StepExecutor {
  static constexpr int kLayers = 3;

  explicit Layers(sched::ComputeStrand& strand)
      : lane(
            strand, *this,
            [this] {
    while (lane.returned() != nullptr) {
      ++steps;
      lane.pop();
    }
            },
            [] {}) {}

  void execute(const step::StepPlan& plan, step::StepResult&) override {
    for (int i = 0; i < kLayers; ++i) {
      begun.release();
      layer.acquire();
      (*plan.between_layers)();
    }
  }
  void post() {
    ASSERT_TRUE(lane.take_turn());
    lane.next_plan();
    lane.post();
  }

  std::counting_semaphore<> begun{0}, layer{0};
  int steps = 0;  // that have come back
  sched::StrandLane lane;
};

struct Predictors : testing::Test {
  asio::io_context loop;
  sched::ComputeStrand strand{loop};
  kernels::ThreadTeam team{2};
  NetworkPredictor predictor{loop, strand, load("mlp"), team, {.most_waiting = 100}};

  std::vector<Tensor> solo(const Tensor& x) {
    const std::shared_ptr<const model::Network> network = load("mlp");
    kernels::ThreadTeam alone(1);
    model::NetworkRun run(*network, network->complete({x}).value(), {0, 3}, alone);
    while (!run.done()) EXPECT_TRUE(run.advance());
    return run.take_outputs();
  }
};

TEST_F(Predictors, GiveEachClientItsOwnAnswerWhoeverElseLeaves) {
  std::mt19937 random(3);
  std::vector<Tensor> inputs;
  std::vector<std::unique_ptr<PendingPrediction>> tickets;
  for (int i = 0; i < 60; ++i) {
    inputs.push_back(observation(random));
    tickets.push_back(predictor.submit({inputs.back()}, {0, 3}, 0).value());
    if (i % 3 == 1) tickets[static_cast<std::size_t>(i)].reset();
    if (i % 7 == 6) loop.poll_one();
  }
  loop.run();
  for (std::size_t i = 0; i < tickets.size(); ++i) {
    if (!tickets[i]) continue;
    const auto outcome = tickets[i]->try_take();
    ASSERT_TRUE(outcome && outcome->has_value()) << i;
    const std::vector<Tensor> expected = solo(inputs[i]);
    EXPECT_EQ((*outcome)->at(0).floats, expected[0].floats) << i;
    EXPECT_EQ((*outcome)->at(1).floats, expected[1].floats) << i;
    EXPECT_FALSE(tickets[i]->try_take());
  }
}

// One is on the strand; those that come meanwhile share the products of one evaluation.
TEST_F(Predictors, JoinTheRowsOfThoseThatWaitTogether) {
  std::mt19937 random(4);
  std::vector<Tensor> inputs;
  std::vector<std::unique_ptr<PendingPrediction>> tickets;
  for (int i = 0; i < 21; ++i) {
    inputs.push_back(observation(random));
    tickets.push_back(predictor.submit({inputs.back()}, {0, 3}, 0).value());
  }
  EXPECT_EQ(predictor.stats().running, 1U);
  EXPECT_EQ(predictor.stats().waiting, 20U);
  EXPECT_TRUE(tickets.front()->started());
  EXPECT_FALSE(tickets.back()->started());
  loop.run();
  EXPECT_EQ(predictor.stats().evaluations, 2U);
  for (std::size_t i = 0; i < tickets.size(); ++i) {
    const auto outcome = tickets[i]->try_take();
    ASSERT_TRUE(outcome && outcome->has_value()) << i;
    const std::vector<Tensor> expected = solo(inputs[i]);
    EXPECT_EQ((*outcome)->at(0).floats, expected[0].floats) << i;
    EXPECT_EQ((*outcome)->at(1).shape, expected[1].shape) << i;
  }
}

// Others' outputs are evaluated apart, and what one gets wrong costs the others nothing.
TEST_F(Predictors, JoinOnlyWhatFitsAndFailAlone) {
  NetworkPredictor tokens(loop, strand, load("tokens"), team, {.most_waiting = 100});
  const auto submit = [&](std::int64_t id, std::int64_t time, std::size_t output) {
    Tensor ids = Tensor::zeros(ElementType::kInt64, {1, time});
    ids.integers.back() = id;
    return tokens.submit({std::move(ids)}, {output}, 0).value();
  };
  std::vector<std::unique_ptr<PendingPrediction>> tickets;
  tickets.push_back(submit(1, 2, 0));  // on the strand at once
  for (const std::int64_t id : {3, 11, 5, 4}) tickets.push_back(submit(id, 2, 0));
  tickets.push_back(submit(3, 3, 0));
  tickets.push_back(submit(3, 2, 1));
  loop.run();
  EXPECT_EQ(tokens.stats().evaluations, 4U);
  EXPECT_EQ(tokens.stats().finished, 6U);
  EXPECT_EQ(tokens.stats().failed, 1U);
  std::vector<std::vector<float>> answers;
  for (std::size_t i = 0; i < tickets.size(); ++i) {
    const auto outcome = tickets[i]->try_take();
    ASSERT_TRUE(outcome) << i;
    EXPECT_EQ(outcome->has_value(), i != 2) << i;
    answers.push_back(outcome->has_value() ? (*outcome)->at(0).floats : std::vector<float>());
  }
  auto alone = submit(5, 2, 0);
  loop.restart();
  loop.run();
  EXPECT_EQ(alone->try_take()->value().at(0).floats, answers[3]);
}

TEST_F(Predictors, RefuseWhatDoesNotFitAndWhatIsTooMuch) {
  EXPECT_EQ(predictor.submit({Tensor::zeros(ElementType::kFloat32, {2, 8})}, {0}, 0).error().param, "inputs.x");
  std::vector<std::unique_ptr<PendingPrediction>> tickets;
  std::optional<Error> refusal;
  for (int i = 0; i < 202 && !refusal; ++i) {  // the loop does not run, so what is posted does not come back
    auto ticket = predictor.submit({Tensor::zeros(ElementType::kFloat32, {2, 7})}, {0}, 0);
    ticket ? tickets.push_back(std::move(*ticket)) : static_cast<void>(refusal = ticket.error());
  }
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->code, ErrorCode::kOverloaded);
  EXPECT_EQ(refusal->queue_position, 101U);
  EXPECT_EQ(predictor.submit({Tensor::zeros(ElementType::kFloat32, {2, 7})}, {0}, -1).error().queue_position, 1U);
  EXPECT_EQ(predictor.stats().refused, 2U);
  EXPECT_EQ(tickets.size(), 101U);  // one was posted
  tickets.clear();
  EXPECT_TRUE(predictor.submit({Tensor::zeros(ElementType::kFloat32, {2, 7})}, {0}, 0));  // who left waits no more
  loop.run();
}

TEST_F(Predictors, ActWithTheDrawsOfTheirOutputs) {
  std::mt19937 random(9);
  const Tensor x = observation(random);
  auto acting = predictor.act({x}, {.seeds = {4}, .step = 2}, 0).value();
  const auto expected = model::choose_actions(*predictor.policy(), {.seeds = {4}, .step = 2}, solo(x)).value();  // of logits and values
  loop.run();
  const auto acted = acting->try_take();
  ASSERT_TRUE(acted && acted->has_value());
  ASSERT_EQ((*acted)->size(), 3U);
  EXPECT_EQ((*acted)->at(0).integers, expected[0].integers);
  EXPECT_EQ((*acted)->at(1).floats, expected[1].floats);
  EXPECT_EQ((*acted)->at(2).floats, expected[2].floats);
  NetworkPredictor plain(loop, strand, load("lstm"), team, {.most_waiting = 100});
  EXPECT_EQ(plain.act({Tensor::zeros(ElementType::kFloat32, {1, 1, 5}), std::nullopt, std::nullopt}, {}, 0).error().param, "model");
}

TEST_F(Predictors, KeepTheOrderOfPriorities) {
  std::mt19937 random(9);
  const Tensor x = observation(random);
  std::vector<int> order;
  const auto note = [&](int number, std::unique_ptr<PendingPrediction> pending) -> asio::awaitable<void> {
    while (!pending->try_take()) co_await pending->arrived().wait();
    order.push_back(number);
  };
  asio::co_spawn(loop, note(0, predictor.submit({x}, {0}, 0).value()), asio::detached);  // its step is out
  asio::co_spawn(loop, note(1, predictor.submit({x}, {0}, 5).value()), asio::detached);
  asio::co_spawn(loop, note(2, predictor.submit({x}, {0}, 0).value()), asio::detached);
  asio::co_spawn(loop, note(3, predictor.act({x}, {}, -10).value()), asio::detached);
  asio::co_spawn(loop, note(4, predictor.submit({x}, {0}, -3).value()), asio::detached);
  loop.run();
  EXPECT_EQ(order, (std::vector<int>{0, 3, 4, 2, 1}));
}

// Of a million steps of time, which take seconds.
Tensor long_observation() { return Tensor::zeros(ElementType::kFloat32, {1, 1'000'000, 5}); }

TEST_F(Predictors, LeaveLongOnesForOthersOfTheStrandAndOfTheirOwn) {
  NetworkPredictor recurrent(loop, strand, load("gru"), team, {.most_waiting = 100});
  auto endless = recurrent.submit({long_observation(), std::nullopt}, {1}, 0).value();
  auto later = recurrent.submit({long_observation(), std::nullopt}, {1}, 0).value();
  std::mt19937 random(5);
  auto of_another = predictor.submit({observation(random)}, {0}, 0).value();
  auto of_the_same = recurrent.submit({Tensor::zeros(ElementType::kFloat32, {1, 3, 5}), std::nullopt}, {1}, 0).value();
  const auto ended = [](const auto& outcome) { return outcome && outcome->has_value(); };
  bool another = false;
  bool same = false;
  while ((!another || !same) && loop.run_one() > 0) {
    another = another || ended(of_another->try_take());
    same = same || ended(of_the_same->try_take());
  }
  EXPECT_TRUE(another && same);
  EXPECT_FALSE(endless->try_take());
  EXPECT_TRUE(endless->started());
  EXPECT_FALSE(later->started());  // two long ones would keep twice the values
  EXPECT_EQ(recurrent.stats().evaluations, 2U);
  endless.reset();
  later->cancel();
  EXPECT_EQ(later->try_take()->error().code, ErrorCode::kCancelled);
  loop.run();
  EXPECT_EQ(recurrent.stats().finished, 1U);  // what nobody waits for was not computed to its end
  EXPECT_EQ(recurrent.stats().running, 0U);
}

TEST_F(Predictors, EndAtOnceWhenTheyAreCancelled) {
  std::mt19937 random(6);
  auto runs = predictor.submit({observation(random)}, {0}, 0).value();
  auto waits = predictor.submit({observation(random)}, {0}, 0).value();
  const Tensor x = observation(random);
  auto other = predictor.submit({x}, {0, 3}, 0).value();
  runs->cancel();
  waits->cancel();
  EXPECT_EQ(runs->try_take()->error().code, ErrorCode::kCancelled);
  EXPECT_EQ(waits->try_take()->error().code, ErrorCode::kCancelled);
  waits->cancel();  // it has ended
  EXPECT_FALSE(waits->try_take());
  loop.run();
  EXPECT_EQ(other->try_take()->value().at(0).floats, solo(x)[0].floats);
}

TEST_F(Predictors, EndWhatWasAcceptedBeforeTheyAreDrained) {
  auto first = predictor.submit({Tensor::zeros(ElementType::kFloat32, {2, 7})}, {0}, 0).value();
  auto second = predictor.submit({Tensor::zeros(ElementType::kFloat32, {2, 7})}, {0}, 0).value();
  predictor.begin_drain();
  bool drained = false;
  asio::co_spawn(
      loop,
      [&]() -> asio::awaitable<void> { drained = co_await predictor.drained(std::chrono::steady_clock::now() + std::chrono::minutes(1)); },
      asio::detached);
  loop.run();
  EXPECT_TRUE(drained);
  EXPECT_TRUE(first->try_take()->has_value());
  EXPECT_TRUE(second->try_take()->has_value());
  EXPECT_EQ(predictor.submit({Tensor::zeros(ElementType::kFloat32, {2, 7})}, {0}, 0).error().code, ErrorCode::kDraining);
}

// The strand is another's; who waited has left when the turn comes.
TEST_F(Predictors, AreDrainedWhenAllWhoWaitedHaveLeft) {
  Layers model(strand);
  NetworkPredictor other(loop, strand, load("mlp"), team, {.most_waiting = 100});
  model.post();
  model.post();
  model.begun.acquire();  // or the other's step would run before the model's
  auto others = other.submit({Tensor::zeros(ElementType::kFloat32, {2, 7})}, {0}, 0).value();  // takes the place between layers
  auto first = predictor.submit({Tensor::zeros(ElementType::kFloat32, {2, 7})}, {0}, 0).value();
  auto second = predictor.submit({Tensor::zeros(ElementType::kFloat32, {2, 7})}, {0}, 0).value();
  predictor.begin_drain();
  std::optional<bool> drained;
  asio::co_spawn(
      loop,
      [&]() -> asio::awaitable<void> { drained = co_await predictor.drained(std::chrono::steady_clock::now() + std::chrono::hours(1)); },
      asio::detached);
  loop.poll();
  EXPECT_EQ(predictor.stats().waiting, 2U);
  first.reset();
  second.reset();
  model.layer.release(2 * Layers::kLayers);
  loop.run();
  EXPECT_EQ(drained, true);
}

TEST_F(Predictors, RunBetweenTwoLayersOfAModelThatAnswers) {
  Layers model(strand);
  model.post();
  model.post();
  model.begun.acquire();
  std::mt19937 random(6);
  const Tensor x = observation(random);
  auto ticket = predictor.submit({x}, {0, 3}, 0).value();
  model.layer.release();
  while (ticket->try_take() == std::nullopt && loop.run_one() > 0) {
    if (predictor.stats().finished > 0) break;
  }
  EXPECT_EQ(predictor.stats().finished, 1U);
  EXPECT_EQ(model.steps, 0) << "before the step that ran is over";
  model.layer.release(2 * Layers::kLayers - 1);
  loop.run();
}

TEST_F(Predictors, AnswerWhatIsAbortedWithTheReason) {
  std::vector<std::unique_ptr<PendingPrediction>> tickets;
  for (int i = 0; i < 3; ++i) tickets.push_back(predictor.submit({Tensor::zeros(ElementType::kFloat32, {2, 7})}, {0}, 0).value());
  predictor.abort_remaining({ErrorCode::kDraining, "enough", ""});
  loop.run();
  EXPECT_TRUE(tickets[0]->try_take().has_value());  // it was on the strand
  EXPECT_EQ(tickets[2]->try_take()->error().message, "enough");
}

TEST_F(Predictors, TakeTurnsWithOthersOnTheSameStrand) {
  NetworkPredictor other(loop, strand, load("gru"), team, {.most_waiting = 100});
  std::mt19937 random(5);
  std::vector<std::unique_ptr<PendingPrediction>> tickets;
  for (int i = 0; i < 40; ++i) {
    tickets.push_back(predictor.submit({observation(random)}, {0}, 0).value());
    tickets.push_back(other.submit({Tensor::zeros(ElementType::kFloat32, {2, 3, 5}), std::nullopt}, {0, 1}, 0).value());
    if (i % 2 == 0) loop.poll_one();
  }
  loop.run();
  for (const auto& ticket : tickets) EXPECT_TRUE(ticket->try_take()->has_value());
}

}  // namespace
}  // namespace braid::app
