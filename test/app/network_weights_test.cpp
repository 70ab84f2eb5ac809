// Updates of a network's weights: whatever fails on the way, the old ones stay live.
#include "app/serving/turns.h"
#include "app/updated_network.h"
#include "model/stored_values.h"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <functional>
#include <gtest/gtest.h>
#include <latch>
#include <map>
#include <string>
#include <utility>

namespace braid::app {
namespace {

namespace asio = boost::asio;

std::string text_of(const std::vector<std::byte>& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

struct Updates : testing::Test, updated::UpdatedNetwork {
  // What an update comes to when `changed` has been at the tensors.
  Result<WeightFacts> update(const std::function<void(files::SafeTensors&)>& changed) { return update_from(source(changed)); }
  Result<WeightFacts> update_from(WeightSource source, UpdateMode mode = UpdateMode::kFinish) {
    Result<WeightFacts> outcome = Error{ErrorCode::kInternal, "it did not end", {}};
    asio::co_spawn(
        loop,
        [&]() -> asio::awaitable<void> {
          asio::awaitable<Result<WeightFacts>> updating = weights->update(std::move(source), mode);
          outcome = co_await std::move(updating);
        },
        asio::detached);
    loop.restart();
    loop.run();
    return outcome;
  }
  // Another revision, which is not live yet.
  NetworkRevision another() const { return newer_revision(base, first, source(3.0F)).value(); }
};

TEST_F(Updates, WhateverFailsLeavesTheOldOnesLive) {
  const std::vector<float> before = answer();
  const std::string revision = served.revision;
  std::vector<std::byte> odd(9 * 8);
  const std::pair<std::string, std::function<void(files::SafeTensors&)>> faults[] =
      {
          {"'policy.weight' is missing", [](files::SafeTensors& all) { all.tensors.erase("policy.weight"); }},
          {"'more' is none of the model that is loaded", [](files::SafeTensors& all) { all.tensors["more"] = all.tensors["policy.bias"]; }},
          {"'value.weight' has the shape [20, 1]; the loaded one has [1, 20]",
           [](files::SafeTensors& all) {
    all.tensors["value.weight"].shape = {20, 1};
           }},
          {"'policy.bias' is of type I64; the loaded one is of type F32",
           [&](files::SafeTensors& all) {
    all.tensors["policy.bias"] = {"I64", {4}, std::span(odd).first(32)};
           }},
                                                                         };
  for (const auto& [message, fault] : faults) {
    const Result<WeightFacts> outcome = update(fault);
    ASSERT_FALSE(outcome) << message;
    EXPECT_EQ(outcome.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(outcome.error().message.find(message), std::string::npos) << outcome.error().message;
    EXPECT_EQ(answer(), before) << message;
  }
  const std::string whole = text_of(files::write_safetensors(files::parse_safetensors(first.tensors->bytes()).value()));
  EXPECT_EQ(update_from({.path = "/nothing/there", .tensors = {}, .partial = false, .checksum = {}}).error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(update_from({.path = {}, .tensors = whole, .partial = false, .checksum = "sha256:0"}));
  EXPECT_FALSE(update_from({.path = {}, .tensors = whole.substr(0, whole.size() - 1), .partial = false, .checksum = {}}));
  EXPECT_EQ(answer(), before);
  EXPECT_EQ(served.revision, revision);
  EXPECT_EQ(weights->facts().updates, 0U);
}

TEST_F(Updates, PredictionsEndOnTheWeightsThatTheyBeganWith) {
  const std::vector<float> before = answer();
  Tensor x = Tensor::zeros(ElementType::kFloat32, {1, 7});
  for (std::size_t i = 0; i < 7; ++i) x.floats[i] = 0.5F * static_cast<float>(i) - 1.0F;
  auto ticket = predictor.submit({std::move(x)}, {0, 3}, 0).value();
  const std::vector<float> values(20, 3.0F);
  const Result<WeightFacts> facts =
      update([&](files::SafeTensors& all) { all.tensors["value.weight"].bytes = std::as_bytes(std::span(values)); });
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ(served.revision, facts->revision);
  const std::vector<Tensor> outputs = ticket->try_take()->value();
  EXPECT_EQ(outputs[1].floats.front(), before.back());
  EXPECT_NE(answer().back(), before.back());
}

// The first one's step is out when the others come; what it brings is told as it began.
TEST_F(Updates, PredictionsThatWaitGoOnWithTheNewerWeightsWhereTheyAreKept) {
  const std::vector<float> before = answer();
  const NetworkRevision newer = another();
  std::vector<std::unique_ptr<PendingPrediction>> tickets;
  for (int i = 0; i < 3; ++i) tickets.push_back(ask());
  predictor.replace(newer.network, newer.digest, UpdateMode::kKeep);
  tickets.push_back(ask());
  loop.restart();
  loop.run();
  const std::vector<float> after = answer();
  EXPECT_NE(after, before);
  EXPECT_EQ(numbers_of(*tickets[0]), before);
  EXPECT_EQ(tickets[0]->newer_revision(), std::nullopt);
  for (const std::size_t i : {1U, 2U, 3U}) {
    EXPECT_EQ(numbers_of(*tickets[i]), after);
    EXPECT_EQ(tickets[i]->newer_revision(), i < 3 ? std::optional(newer.digest) : std::nullopt);
  }
}

TEST_F(Updates, PredictionsThatWaitEndWhereTheyAreAborted) {
  const NetworkRevision newer = another();
  std::vector<std::unique_ptr<PendingPrediction>> tickets;
  for (int i = 0; i < 3; ++i) tickets.push_back(ask());
  predictor.replace(newer.network, newer.digest, UpdateMode::kAbort);
  tickets.push_back(ask());
  loop.restart();
  loop.run();
  for (const std::size_t i : {1U, 2U}) {
    const auto outcome = tickets[i]->try_take();
    ASSERT_TRUE(outcome && !*outcome);
    EXPECT_EQ(outcome->error().message, "the weights of the network were replaced");
  }
  EXPECT_EQ(numbers_of(*tickets[3]), answer());
  EXPECT_EQ(predictor.count(), 0U);
}

TEST_F(Updates, TakeAnyMode) {
  const std::string whole = text_of(files::write_safetensors(files::parse_safetensors(first.tensors->bytes()).value()));
  for (const UpdateMode mode : {UpdateMode::kFinish, UpdateMode::kKeep, UpdateMode::kAbort})
    EXPECT_TRUE(update_from({.path = {}, .tensors = whole, .partial = false, .checksum = {}}, mode));
}

TEST_F(Updates, ValuesAreRoundedToTheTypeOfTheTensor) {
  const float value[] = {1.00048828125F};  // 1 + 2^-11: a tie in F16, below half a step in BF16
  for (const auto& [type, expected] : std::map<std::string, float>{{"F16", 1.0F}, {"BF16", 1.0F}, {"F32", value[0]}}) {
    const std::vector<std::byte> zero(type == "F32" ? 4 : 2);
    const files::SafeTensors loaded_ones{{}, {{"w", {type, {1}, zero}}}};
    const files::SafeTensors given{{}, {{"w", {"F32", {1}, std::as_bytes(std::span(value))}}}};
    const auto newer = model::with_newer_values(loaded_ones, given, false, "file").value();
    const files::SafeTensors read = files::parse_safetensors(newer).value();
    EXPECT_EQ(read.tensors.at("w").dtype, type);
    EXPECT_EQ(model::floats_of(read.tensors.at("w")).value(), std::vector<float>{expected}) << type;
  }
}

TEST_F(Updates, OneThatIsUnderWayWhenTheServerEndsSaysSo) {
  Result<WeightFacts> outcome = Error{ErrorCode::kInternal, "it did not end", {}};
  std::latch server_ends(1);
  asio::post(workers, [&] { server_ends.wait(); });  // the one thread that would read the file
  asio::co_spawn(
      loop,
      [&]() -> asio::awaitable<void> {
        asio::awaitable<Result<WeightFacts>> updating =
            weights->update({.path = "/nothing", .tensors = {}, .checksum = {}}, UpdateMode::kFinish);
        outcome = co_await std::move(updating);
      },
      asio::detached);
  loop.poll();
  weights.reset();
  server_ends.count_down();
  loop.restart();
  loop.run();
  EXPECT_EQ(outcome.error().code, ErrorCode::kDraining);
}

TEST(Turns, AreTakenInOrderAndWhoLeavesIsPassedOver) {
  asio::io_context loop;
  const Turns turns;
  std::vector<int> order;
  Signal gate;
  const auto walk = [&](int number) -> asio::awaitable<void> {
    asio::awaitable<Turns::Turn> taking = turns.take();
    const Turns::Turn turn = co_await std::move(taking);
    order.push_back(number);
    if (number == 0) co_await gate.wait();
  };
  asio::cancellation_signal leaves;
  asio::co_spawn(loop, walk(0), asio::detached);
  asio::co_spawn(loop, walk(1), asio::bind_cancellation_slot(leaves.slot(), asio::detached));
  asio::co_spawn(loop, walk(2), asio::detached);
  loop.poll();
  EXPECT_EQ(order, std::vector<int>{0});
  leaves.emit(asio::cancellation_type::terminal);
  loop.restart();
  loop.poll();
  gate.notify();
  loop.restart();
  loop.run();
  EXPECT_EQ(order, (std::vector<int>{0, 2}));
}

}  // namespace
}  // namespace braid::app
