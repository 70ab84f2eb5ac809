// Newer weights of a model that others compute, who are lost: those in their place come to the same revision, or compute nothing.
#include "app/updated_model.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace braid::app {
namespace {

namespace asio = boost::asio;
using testing::HasSubstr;

// Has what it is given, until it is lost.
class Group final : public model::PassRunner {
 public:
  struct Given {
    std::size_t bytes;
    bool is_partial;
    std::uint64_t older;
    bool operator==(const Given&) const = default;
  };
  std::vector<Given> weights;
  std::size_t adapters = 0;
  std::optional<std::size_t> lost_after;  // so many files of weights

  Result<void> allocate(std::int32_t) override { return {}; }
  Result<std::shared_ptr<const model::Copies>> hand_out(const model::Adapter&) override {
    ++adapters;
    return copies();
  }
  Result<void> measure(model::Adapter& adapter, const model::Copies&) override {
    for (model::AdaptedMatrix& matrix : adapter.matrices) std::ranges::fill(matrix.magnitude, 1.0F);
    return {};
  }
  Result<std::shared_ptr<const model::Copies>> hand_out(const files::ByteSource& tensors, bool partial,
                                                        const model::Copies& older) override {
    if (lost_after && weights.size() >= *lost_after) return Error{ErrorCode::kIo, "rank 1 of 2 is lost", {}};
    weights.push_back({tensors.bytes().size(), partial, older.number});
    return copies();
  }
  std::shared_ptr<const model::Copies> loaded() override { return std::make_shared<const model::Copies>(0); }
  void move(const step::StepPlan&) override {}
  void run(const step::Pass&, const model::Decoder&, const model::AdapterTable&) override { throw std::logic_error("it only has things"); }
  model::Rows logits(std::int64_t, std::int64_t) override { throw std::logic_error("it only has things"); }
  void hidden(std::int64_t, std::span<float>) override { throw std::logic_error("it only has things"); }

 private:
  std::shared_ptr<const model::Copies> copies() { return std::make_shared<const model::Copies>(++number_); }
  std::uint64_t number_ = 0;
};

struct GroupsModel : updated::UpdatedModel {
  explicit GroupsModel(std::shared_ptr<Group> its_group = std::make_shared<Group>())
      : UpdatedModel({.end = [](const auto&, const Error&) {}, .change = [](const auto&) {}}, its_group), group(std::move(its_group)) {}

  template <class Outcome>
  Outcome run(asio::awaitable<Outcome> work) {
    std::optional<Outcome> outcome;
    asio::co_spawn(
        loop,
        [](std::optional<Outcome>& told, asio::awaitable<Outcome> its_work) -> asio::awaitable<void> {
          told = co_await std::move(its_work);
        }(outcome, std::move(work)),
        asio::detached);
    loop.restart();
    loop.run();
    return std::move(outcome).value();
  }
  void run(asio::awaitable<void> work) {
    asio::co_spawn(loop, std::move(work), asio::detached);
    loop.restart();
    loop.run();
  }
  WeightFacts update(WeightSource source) { return run(weights.update(std::move(source), UpdateMode::kFinish)).value(); }
  Result<void> restore(const std::shared_ptr<const KeptWeights>& kept) { return run(weights.restore(kept)); }

  const std::shared_ptr<Group> group;
};

WeightSource norm(GroupsModel& model) { return model.newer_weights({{"output_norm.weight", {64}}}); }
WeightSource matrix(GroupsModel& model) { return model.newer_weights({{"blk.0.attn_q.weight", {64, 64}}}); }

TEST(KeptWeights, BringAnotherGroupToTheSameRevision) {
  GroupsModel first;
  EXPECT_EQ(first.weights.keep(), nullptr);
  first.update(norm(first));
  first.update(matrix(first));
  const WeightFacts facts = first.update(norm(first));
  first.weights.name_version("third");
  const auto kept = first.weights.keep();
  ASSERT_NE(kept, nullptr);
  ASSERT_EQ(kept->files.size(), 2U) << "of the first norm nothing is left";
  EXPECT_EQ(first.weights.kept_bytes(), kept->files[0].bytes->bytes().size() + kept->files[1].bytes->bytes().size());

  GroupsModel second;
  const Result<void> restored = second.restore(kept);
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(second.group->weights,
            (std::vector<Group::Given>{{first.group->weights[1].bytes, true, 0}, {first.group->weights[2].bytes, true, 1}}));
  EXPECT_EQ(second.revisions.base().revision, facts.revision);
  EXPECT_EQ(second.weights.facts().revision, facts.revision);
  EXPECT_EQ(second.weights.facts().version, "third");
  EXPECT_EQ(second.weights.facts().updates, 3U);
  EXPECT_EQ(second.weights.keep()->files.size(), 2U) << "for the next one";
}

TEST(KeptWeights, AreWholeOrTheModelIsNotUsed) {
  GroupsModel first;
  first.update(norm(first));
  const WeightFacts facts = first.update(matrix(first));
  for (const std::size_t files : {0U, 1U}) {
    GroupsModel second;
    second.group->lost_after = files;
    const Result<void> restored = second.restore(first.weights.keep());
    ASSERT_FALSE(restored);
    EXPECT_THAT(restored.error().message, HasSubstr(facts.revision + ": rank 1 of 2 is lost")) << files;
  }
}

TEST(KeptWeights, WhatComesToAnotherRevisionIsNotUsed) {
  GroupsModel first;
  first.update(norm(first));
  auto other = std::make_shared<KeptWeights>(*first.weights.keep());
  other->facts.revision = "another";
  const Result<void> restored = GroupsModel().restore(other);
  ASSERT_FALSE(restored);
  EXPECT_THAT(restored.error().message, HasSubstr("another was expected"));
}

TEST(KeptWeights, OfOtherFilesAreLeftOut) {
  GroupsModel first;
  first.update(norm(first));
  auto other = std::make_shared<KeptWeights>(*first.weights.keep());
  other->base = "of another file";
  GroupsModel second;
  EXPECT_TRUE(second.restore(other));
  EXPECT_EQ(second.weights.facts().revision, "loaded");
  EXPECT_TRUE(second.group->weights.empty());
}

TEST(KeptWeights, OfAModelThatThisProcessComputesAreNone) {
  GroupsModel own(nullptr);
  own.update(norm(own));
  EXPECT_EQ(own.weights.keep(), nullptr);
}

// Those of before and of after the update come back with the newer weights, and the first alone with those of the file.
TEST(KeptWeights, HaveTheirAdaptersWithMagnitudes) {
  GroupsModel first;
  const auto load = [&](const std::string& name) {
    return first.run(first.adapters.load(name, {.path = first.write_adapter(name, true), .tensors = {}, .checksum = {}}, std::nullopt))
        .value();
  };
  load("before");
  first.update(norm(first));
  load("after");
  for (const bool has_newer : {true, false}) {
    GroupsModel second;
    if (has_newer) {
      ASSERT_TRUE(second.restore(first.weights.keep()));
    }
    second.run(second.adapters.restore(first.adapters.keep()));
    EXPECT_TRUE(second.adapters.has("before"));
    EXPECT_EQ(second.adapters.has("after"), has_newer);
    EXPECT_EQ(second.group->adapters, has_newer ? 2U : 1U);
    GroupsModel third;
    third.run(third.adapters.restore(second.adapters.keep()));
    EXPECT_TRUE(third.adapters.has("before"));
    EXPECT_FALSE(third.adapters.has("after"));
  }
}

}  // namespace
}  // namespace braid::app
