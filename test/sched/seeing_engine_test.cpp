// Requests with images: looked at once, kept, found again behind them, and nobody's answer stops meanwhile.
#include "sched/seeing_engine.h"

#include "sched/rig.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_future.hpp>
#include <gtest/gtest.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace braid::sched::test {
namespace {

// An image of so many vectors, those of Tint::vector_of(image, from + ...).
SharedPixels picture(std::uint16_t image, std::int32_t vectors, std::int32_t from = 0) {
  Pixels pixels;
  pixels.tiles = {{8, 8}};
  pixels.vectors = vectors;
  pixels.digest = {image, static_cast<std::uint64_t>(from)};
  return std::make_shared<const Pixels>(std::move(pixels));
}

// Takes so many parts for each image.
class FakeEyes final : public step::ImageEncoder {
 public:
  explicit FakeEyes(int parts) : parts_(parts) {}

  Result<void> check(const Pixels& pixels) const override {
    if (pixels.tiles.front().height == 8) return {};
    return Error{ErrorCode::kInvalidArgument, "another height than 8", {}};
  }
  std::unique_ptr<step::ImagePass> begin(SharedPixels pixels) override {
    ++begun;
    if (fails) throw std::runtime_error("blind");
    return std::make_unique<Pass>(*this, std::move(pixels));
  }

  std::atomic<int> begun = 0;
  std::atomic<int> parts_done = 0;
  bool fails = false;
  bool sees_nothing = false;

 private:
  struct Pass final : step::ImagePass {
    Pass(FakeEyes& its_eyes, SharedPixels its_pixels) : eyes(its_eyes), pixels(std::move(its_pixels)), left(eyes.parts_) {}
    bool advance() override {
      ++eyes.parts_done;
      return --left > 0;
    }
    std::vector<float> take() override {
      std::vector<float> vectors;
      for (std::int32_t i = 0; i < pixels->vectors && !eyes.sees_nothing; ++i)
        vectors.push_back(Tint::vector_of(static_cast<std::uint16_t>(pixels->digest[0]), static_cast<std::int32_t>(pixels->digest[1]) + i));
      return vectors;
    }
    FakeEyes& eyes;
    const SharedPixels pixels;
    int left;
  };

  const int parts_;
};

constexpr std::int32_t kFirst = 5;  // place of a picture in its prompt

struct SeeingRig {
  SchedulerOptions options = Rig::small_options();
  boost::asio::io_context loop;
  ComputeStrand strand{loop};
  FakeModel model;
  FakeEyes eyes;
  Scheduler scheduler;
  SeeingEngine engine;

  // Every part is a step of its own.
  explicit SeeingRig(int parts = 3, std::size_t kept = 1 << 20, FakeModelOptions model_options = {})
      : model(Rig::fitting(model_options, options)), eyes(parts), scheduler(loop, strand, model, options),
        engine(loop, strand, eyes, {.width = 1, .revision = {1, 2}}, {.kept_bytes = kept, .most_of_step = std::chrono::microseconds(0)},
               scheduler, options) {}

  static GenerationRequest question(std::vector<SharedPixels> images, std::int32_t key = 1, std::int32_t max_tokens = 6) {
    GenerationRequest request;
    request.prompt = Rig::prompt_of(40, key);
    request.stop.max_tokens = max_tokens;
    std::int32_t first = kFirst;
    for (const SharedPixels& image : images) {
      request.media.push_back({first, image->vectors, image->digest});
      first += image->vectors;
    }
    request.images = std::move(images);
    return request;
  }

  std::unique_ptr<Client> start(GenerationRequest request) {
    auto client = std::make_unique<Client>();
    client->prompt = request.prompt;
    client->stop = request.stop;
    if (!request.images.empty()) {
      client->tint.image = static_cast<std::uint16_t>(request.images.front()->digest[0]);
      client->tint.first = kFirst;
      for (const SharedPixels& image : request.images) client->tint.count = static_cast<std::uint16_t>(client->tint.count + image->vectors);
    }
    Result<Ticket> ticket = engine.submit(std::move(request));
    EXPECT_TRUE(ticket.has_value());
    if (ticket) {
      client->ticket = std::move(*ticket);
      boost::asio::co_spawn(loop, read_to_end(*client), boost::asio::detached);
    }
    return client;
  }

  template <class Condition>
  bool run_until(Condition reached) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);  // which only a hang takes
    loop.restart();
    while (!reached()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      if (loop.run_one_for(std::chrono::seconds(1)) == 0 && loop.stopped()) return reached();
    }
    return true;
  }

  void expect_right(const Client& client) {
    ASSERT_TRUE(client.finished());
    EXPECT_EQ(client.tokens, model.expected(client.prompt, client.stop, client.tint));
    EXPECT_TRUE(model.violations().empty());
  }

  void complete(const Client& client) {
    EXPECT_TRUE(run_until([&] { return client.finished(); }));
    expect_right(client);
  }
};

TEST(SeeingEngine, AnImageBecomesTheVectorsOfItsTokens) {
  SeeingRig rig;
  const auto client = rig.start(SeeingRig::question({picture(3, 9)}));
  EXPECT_FALSE(client->ticket->started());
  rig.complete(*client);
  EXPECT_EQ(rig.eyes.begun, 1);
  EXPECT_EQ(rig.eyes.parts_done, 3);
}

TEST(SeeingEngine, SeveralImagesFollowEachOther) {
  SeeingRig rig;
  rig.complete(*rig.start(SeeingRig::question({picture(3, 9), picture(3, 4, 9), picture(3, 1, 13)})));
  EXPECT_EQ(rig.eyes.begun, 3);
}

TEST(SeeingEngine, TheSecondQuestionAboutAnImageComputesNeitherImageNorPromptAgain) {
  SeeingRig rig;
  rig.complete(*rig.start(SeeingRig::question({picture(3, 9)})));
  const auto again = rig.start(SeeingRig::question({picture(3, 9)}));
  rig.complete(*again);
  EXPECT_EQ(rig.eyes.begun, 1);
  EXPECT_EQ(again->finish->usage.cached_tokens, 39);
  const ImageStats stats = rig.engine.stats().images.value();
  EXPECT_EQ(stats.encoded, 1U);
  EXPECT_EQ(stats.found, 1U);
  EXPECT_EQ(stats.waiting, 0U);
  EXPECT_EQ(stats.kept_bytes, 9 * sizeof(float));
  const auto other = rig.start(SeeingRig::question({picture(4, 9)}));  // in the same place of the same text
  rig.complete(*other);
  EXPECT_EQ(rig.eyes.begun, 2);
  EXPECT_EQ(other->finish->usage.cached_tokens, kFirst);
}

TEST(SeeingEngine, EqualImagesAtOnceAreLookedAtOnce) {
  SeeingRig rig;
  std::vector<std::unique_ptr<Client>> clients;
  for (std::int32_t i = 0; i < 5; ++i) clients.push_back(rig.start(SeeingRig::question({picture(7, 6)}, i)));
  for (const auto& client : clients) rig.complete(*client);
  EXPECT_EQ(rig.eyes.begun, 1);
}

TEST(SeeingEngine, WhatBecameOfAnImageIsSharedAmongThoseOfASalt) {
  SeeingRig rig;
  for (const char* salt : {"", "mine", "yours", "mine", ""}) {
    GenerationRequest request = SeeingRig::question({picture(7, 6)});
    request.cache_salt = salt;
    rig.complete(*rig.start(std::move(request)));
  }
  EXPECT_EQ(rig.eyes.begun, 3);
}

TEST(SeeingEngine, WhatIsKeptHasItsBytes) {
  SeeingRig rig(1, 2 * 9 * sizeof(float));
  for (const std::uint16_t image : {std::uint16_t{1}, std::uint16_t{2}, std::uint16_t{1}, std::uint16_t{3}, std::uint16_t{1}})
    rig.complete(*rig.start(SeeingRig::question({picture(image, 9)}, image)));
  EXPECT_EQ(rig.eyes.begun, 3);  // the second went for the third
  EXPECT_EQ(rig.engine.images().kept_bytes(), 2 * 9 * sizeof(float));
  rig.complete(*rig.start(SeeingRig::question({picture(2, 9)}, 2)));
  EXPECT_EQ(rig.eyes.begun, 4);
  rig.complete(*rig.start(SeeingRig::question({picture(9, 20)}, 9)));  // more than there is room for
  EXPECT_LE(rig.engine.images().kept_bytes(), 2 * 9 * sizeof(float));
}

TEST(SeeingEngine, AnImageThatNobodyWaitsForIsLeft) {
  SeeingRig rig(1000);
  auto gone = rig.start(SeeingRig::question({picture(1, 9)}));
  auto never = rig.start(SeeingRig::question({picture(2, 9)}));
  EXPECT_TRUE(rig.run_until([&] { return rig.eyes.parts_done >= 5; }));
  gone->ticket->cancel();
  never->ticket->cancel();
  EXPECT_TRUE(rig.run_until([&] { return rig.strand.idle(); }));
  EXPECT_LT(rig.eyes.parts_done, 1000);
  EXPECT_EQ(rig.eyes.begun, 1);
  rig.complete(*rig.start(SeeingRig::question({})));
}

TEST(SeeingEngine, AnswersGoOnWhileAnImageIsLookedAt) {
  constexpr int kParts = 40;
  SeeingRig rig(kParts);
  const auto stream = rig.start(SeeingRig::question({}, 1, 400));
  EXPECT_TRUE(rig.run_until([&] { return stream->tokens.size() > 3; }));
  const std::size_t before = rig.model.steps().size();
  const auto seeing = rig.start(SeeingRig::question({picture(1, 9)}));
  EXPECT_TRUE(rig.run_until([&] { return rig.eyes.parts_done == kParts; }));
  EXPECT_GT(rig.model.steps().size() - before, 10U);
  rig.complete(*seeing);
  rig.complete(*stream);
}

TEST(SeeingEngine, AnImageThatCannotBeLookedAtEndsItsRequestAlone) {
  SeeingRig rig;
  const auto expect_error = [&](const Client& client) {
    EXPECT_TRUE(rig.run_until([&] { return client.finished(); }));
    ASSERT_TRUE(client.finish->error.has_value());
    EXPECT_EQ(client.finish->reason, FinishReason::kError);
    EXPECT_EQ(client.finish->error->code, ErrorCode::kInternal);
  };
  rig.eyes.fails = true;
  expect_error(*rig.start(SeeingRig::question({picture(1, 9)})));
  rig.eyes.fails = false;
  rig.eyes.sees_nothing = true;
  expect_error(*rig.start(SeeingRig::question({picture(1, 9)})));
  rig.eyes.sees_nothing = false;
  rig.complete(*rig.start(SeeingRig::question({picture(1, 9)})));
}

TEST(SeeingEngine, RefusesWhatDoesNotFitTogether) {
  SeeingRig rig;
  const auto expect_refused = [&](GenerationRequest request) {
    const Result<Ticket> ticket = rig.engine.submit(std::move(request));
    ASSERT_FALSE(ticket.has_value());
    EXPECT_EQ(ticket.error().code, ErrorCode::kInvalidArgument);
  };
  GenerationRequest fewer = SeeingRig::question({picture(1, 9)});
  fewer.media.front().count = 8;
  expect_refused(std::move(fewer));
  GenerationRequest none = SeeingRig::question({picture(1, 9)});
  none.media.clear();
  expect_refused(std::move(none));
  GenerationRequest more = SeeingRig::question({picture(1, 9)});
  more.media.push_back({20, 3, {}});
  expect_refused(std::move(more));
  auto tall = std::make_shared<Pixels>(*picture(1, 9));
  tall->tiles.front().height = 9;
  expect_refused(SeeingRig::question({std::move(tall)}));
  GenerationRequest longer = SeeingRig::question({picture(1, 9)});
  longer.prompt.resize(1000);
  const Result<Ticket> ticket = rig.engine.submit(std::move(longer));
  ASSERT_FALSE(ticket.has_value());
  EXPECT_EQ(ticket.error().code, ErrorCode::kContextLength);
  EXPECT_EQ(rig.eyes.begun, 0);
}

TEST(SeeingEngine, WhatWasAcceptedIsLookedAtAndAnsweredWhenItDrains) {
  SeeingRig rig(20);
  const auto client = rig.start(SeeingRig::question({picture(1, 9)}));
  rig.engine.begin_drain();
  const Result<Ticket> late = rig.engine.submit(SeeingRig::question({picture(1, 9)}));
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code, ErrorCode::kDraining);
  bool drained = false;
  boost::asio::co_spawn(rig.loop, rig.engine.drained(std::chrono::steady_clock::now() + std::chrono::seconds(60)),
                        [&](const std::exception_ptr&, bool all) { drained = all; });
  rig.complete(*client);
  EXPECT_TRUE(rig.run_until([&] { return drained; }));
}

TEST(SeeingEngine, WhatWaitsForAnImageCanBeAbortedByItsId) {
  SeeingRig rig(1000);
  GenerationRequest request = SeeingRig::question({picture(1, 9)});
  request.id = "one";
  const auto client = rig.start(std::move(request));
  GenerationRequest twin = SeeingRig::question({picture(1, 9)});
  twin.id = "one";
  EXPECT_FALSE(rig.engine.submit(std::move(twin)).has_value());
  ASSERT_EQ(rig.engine.sequences(10).size(), 1U);
  EXPECT_EQ(rig.engine.sequences(10).front().id, "one");
  EXPECT_FALSE(rig.engine.cancel("two"));
  EXPECT_TRUE(rig.engine.cancel("one"));
  EXPECT_TRUE(rig.run_until([&] { return client->finished(); }));
  EXPECT_EQ(client->finish->reason, FinishReason::kCancelled);
  EXPECT_TRUE(rig.engine.sequences(10).empty());
}

TEST(SeeingEngine, NewerWeightsReachWhoWaitsForAnImage) {
  SeeingRig rig(50);
  const auto client = rig.start(SeeingRig::question({picture(1, 9)}));
  EXPECT_TRUE(rig.run_until([&] { return rig.eyes.parts_done >= 1; }));
  ASSERT_FALSE(client->ticket->started());
  rig.engine.change_weights([](const AdapterUse&) { return AdapterUse{.index = 2, .revision = "adapter 2"}; });
  client->tint.adapter = 2;
  rig.complete(*client);
  EXPECT_EQ(rig.eyes.begun, 1);
}

TEST(SeeingEngine, WhenAllAreEndedSoIsWhoWaitsForAnImage) {
  SeeingRig rig(1000);
  const auto client = rig.start(SeeingRig::question({picture(1, 9)}));
  EXPECT_TRUE(rig.run_until([&] { return rig.eyes.parts_done >= 1; }));
  rig.engine.end_users([](const AdapterUse& use) { return use.index == 2; }, {ErrorCode::kCancelled, "not of these", {}});
  ASSERT_FALSE(client->finished());
  rig.engine.end_users([](const AdapterUse&) { return true; }, {ErrorCode::kCancelled, "the weights of the model were replaced", {}});
  EXPECT_TRUE(rig.run_until([&] { return client->finished(); }));
  EXPECT_EQ(client->finish->reason, FinishReason::kCancelled);
  EXPECT_EQ(client->finish->error->message, "the weights of the model were replaced");
  rig.complete(*rig.start(SeeingRig::question({})));
}

TEST(SeeingEngine, ATicketMayOutliveIt) {
  boost::asio::io_context loop;
  ComputeStrand strand(loop);
  const SchedulerOptions options = Rig::small_options();
  FakeModel model(Rig::fitting({}, options));
  FakeEyes eyes(1000);
  Scheduler scheduler(loop, strand, model, options);
  auto engine = std::make_unique<SeeingEngine>(loop, strand, eyes, SightRules{.width = 1}, ImageOptions{}, scheduler, options);
  const Ticket ticket = engine->submit(SeeingRig::question({picture(1, 9)})).value();
  engine.reset();
  const std::optional<TokenEvent> event = ticket->try_next();
  ASSERT_TRUE(event.has_value());
  EXPECT_TRUE(std::holds_alternative<Finish>(*event));
}

}  // namespace
}  // namespace braid::sched::test
