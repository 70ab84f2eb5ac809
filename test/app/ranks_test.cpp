// What the server and the ranks of a model say to each other.
#include "files/mapping.h"
#include "kernels/low_rank.h"
#include "kernels/select.h"
#include "model/thread_exchange.h"
#include "ranks/adapter_image.h"
#include "ranks/message.h"
#include "ranks/rank_blocks.h"
#include "ranks/rank_group.h"
#include "ranks/rank_loop.h"
#include "ranks/remote_passes.h"

#include <array>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <functional>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <numeric>
#include <optional>
#include <poll.h>
#include <string>
#include <thread>
#include <vector>

namespace braid::ranks {
namespace {

step::Pass some_pass() {
  step::Pass pass;
  pass.tokens = {{.token = 5, .position = 3, .tables = 0, .table_size = 1}, {.token = 7, .position = 4, .tables = 0, .table_size = 1}};
  pass.picked = {1};
  pass.blocks = {4, 9};
  pass.given = {0.5F, -1.0F};
  pass.sequences = {{.first = 0, .count = 2, .state = 1, .snapshot_count = 1}};
  pass.snapshots = {{.count = 2, .state = 1}};
  return pass;
}

Uses some_uses() {
  Uses uses;
  uses.weights = 3;
  uses.sets = {{.index = 5, .count = 1}};
  uses.parts = {{.adapter = 2, .scale = 0.5F}};
  uses.forgotten = {1};
  return uses;
}

TEST(RankMessages, ComeAsTheyWent) {
  Bytes bytes;
  step::Pass pass;
  Uses uses;
  write(some_pass(), some_uses(), bytes);
  ASSERT_TRUE(read(bytes, pass, uses));
  ASSERT_EQ(pass.tokens.size(), 2U);
  EXPECT_EQ(pass.tokens[1].token, 7);
  EXPECT_EQ(pass.picked, std::vector<std::int32_t>{1});
  EXPECT_EQ(pass.blocks, (std::vector<std::int32_t>{4, 9}));
  EXPECT_EQ(pass.given, (std::vector<float>{0.5F, -1.0F}));
  ASSERT_EQ(pass.sequences.size(), 1U);
  EXPECT_EQ(pass.sequences[0].count, 2);
  ASSERT_EQ(pass.snapshots.size(), 1U);
  EXPECT_EQ(uses.weights, 3U);
  ASSERT_EQ(uses.sets.size(), 1U);
  EXPECT_EQ(uses.sets[0].index, 5U);
  EXPECT_EQ(uses.parts, some_uses().parts);
  EXPECT_EQ(uses.forgotten, std::vector<std::uint64_t>{1});

  ranks::Setup setup;
  write(ranks::Setup{.model = "/models/a.gguf", .context = 4096, .threads = 3}, bytes);
  ASSERT_TRUE(read(bytes, setup));
  EXPECT_EQ(setup.model, "/models/a.gguf");
  EXPECT_EQ(setup.context, 4096);
  EXPECT_EQ(setup.threads, 3);
}

TEST(RankMessages, WhatIsCutOrHasMoreIsRefused) {
  Bytes bytes;
  write(some_pass(), some_uses(), bytes);
  step::Pass pass;
  Uses uses;
  for (std::size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(read(std::span(bytes).first(size), pass, uses)) << size;
  Bytes longer = bytes;
  longer.push_back({});
  EXPECT_FALSE(read(longer, pass, uses));
  Bytes hostile = bytes;  // a count of tokens that no memory holds
  for (std::size_t i = 0; i < 8; ++i) hostile[i] = std::byte{0xff};
  EXPECT_FALSE(read(hostile, pass, uses));
}

constexpr std::uint32_t kMatrices = 5;
constexpr std::int64_t kWidth = 32;

// Of rank 2 for the second of five matrices, with magnitudes, and a matrix of its own in the place of the third; of the others, an embedding
// and a head, rows of three tokens.
model::Adapter some_adapter(const kernels::KernelTable& table) {
  constexpr std::int64_t kOutputs = 32, kInputs = kWidth;
  const std::int64_t stride = kernels::whole_column_groups(kInputs);
  const auto low_rank = static_cast<std::size_t>((kInputs + 2) * stride) * sizeof(float);
  model::Adapter adapter;
  adapter.storage = files::Mapping::reserve(low_rank + table.packed_bytes(kernels::WeightType::kF32, kOutputs, kInputs), "a test").value();
  auto* values = reinterpret_cast<float*>(adapter.storage.data());
  for (std::size_t i = 0; i < adapter.storage.size() / sizeof(float); ++i) values[i] = static_cast<float>(i);
  adapter.place = {-1, -1, 0, 1, 2, 3};
  adapter.widest = stride;
  adapter.rank = 2;
  adapter.matrices.resize(4);
  adapter.matrices[0].low_rank = {.rank = 2,
                                  .inputs = kInputs,
                                  .scale = 0.25F,
                                  .down_stride = stride,
                                  .up_columns = stride,
                                  .down = adapter.storage.data(),
                                  .up = adapter.storage.data() + kInputs * stride * 4};
  adapter.matrices[0].magnitude = {1.0F, 2.0F};
  adapter.matrices[0].bias = {3.0F};
  adapter.matrices[1].replacement = {
      .type = kernels::WeightType::kF32, .outputs = kOutputs, .inputs = kInputs, .data = adapter.storage.data() + low_rank, .number = 3};
  for (const bool is_table : {true, false}) {
    model::AdaptedMatrix& rows = adapter.matrices[is_table ? 2 : 3];
    rows.tokens = {1, 5, 8};
    rows.is_table = is_table;
    rows.rows.assign(static_cast<std::size_t>(kInputs * (is_table ? 3 : kernels::whole_column_groups(3))), 0.5F);
  }
  return adapter;
}

TEST(RankMessages, AnAdapterComesAsItWent) {
  const kernels::KernelTable& table = kernels::best_kernel_table();
  const model::Adapter sent = some_adapter(table);
  Bytes bytes;
  write_adapter(7, sent, bytes);
  const auto received = read_adapter(bytes, {kMatrices, kWidth, table});
  ASSERT_TRUE(received.has_value()) << received.error().message;
  EXPECT_EQ(received->number, 7U);
  const model::Adapter& adapter = *received->adapter;
  EXPECT_EQ(adapter.place, sent.place);
  EXPECT_EQ(adapter.widest, sent.widest);
  EXPECT_EQ(adapter.rank, 2);
  ASSERT_EQ(adapter.matrices.size(), 4U);
  for (const std::size_t i : {2U, 3U}) {
    EXPECT_EQ(adapter.matrices[i].tokens, sent.matrices[i].tokens);
    EXPECT_EQ(adapter.matrices[i].rows, sent.matrices[i].rows);
    EXPECT_EQ(adapter.matrices[i].is_table, i == 2U);
  }
  const model::LowRankFactors& factors = adapter.matrices[0].low_rank;
  EXPECT_EQ(factors.scale, 0.25F);
  EXPECT_EQ(factors.up - adapter.storage.data(), sent.matrices[0].low_rank.up - sent.storage.data());
  EXPECT_EQ(std::memcmp(factors.down, sent.storage.data(), sent.storage.size()), 0);
  EXPECT_EQ(adapter.matrices[0].magnitude, sent.matrices[0].magnitude);
  EXPECT_EQ(adapter.matrices[0].bias, sent.matrices[0].bias);
  EXPECT_EQ(adapter.matrices[1].replacement.outputs, 32);
  EXPECT_EQ(adapter.matrices[1].replacement.data - adapter.storage.data(), sent.matrices[1].replacement.data - sent.storage.data());
}

TEST(RankMessages, AnAdapterThatPointsOutOfItselfIsRefused) {
  const kernels::KernelTable& table = kernels::best_kernel_table();
  Bytes bytes;
  write_adapter(7, some_adapter(table), bytes);
  EXPECT_FALSE(read_adapter(bytes, {kMatrices + 1, kWidth, table})) << "of another model";
  for (std::size_t size = 0; size < bytes.size(); size += 13)
    EXPECT_FALSE(read_adapter(std::span(bytes).first(size), {kMatrices, kWidth, table}));
  model::Adapter wide = some_adapter(table);
  wide.matrices[0].low_rank.up_columns *= 100;
  write_adapter(7, wide, bytes);
  EXPECT_FALSE(read_adapter(bytes, {kMatrices, kWidth, table}));
  model::Adapter misplaced = some_adapter(table);
  misplaced.place[1] = 4;
  write_adapter(7, misplaced, bytes);
  EXPECT_FALSE(read_adapter(bytes, {kMatrices, kWidth, table}));
  for (const std::size_t i : {2U, 3U}) {
    model::Adapter other = some_adapter(table);
    other.matrices[i].is_table = !other.matrices[i].is_table;
    write_adapter(7, other, bytes);
    EXPECT_FALSE(read_adapter(bytes, {kMatrices, kWidth, table})) << "of which an embedding's are fewer numbers than a head's";
    other = some_adapter(table);
    other.matrices[i].rows.resize(other.matrices[i].rows.size() / 2);
    write_adapter(7, other, bytes);
    EXPECT_FALSE(read_adapter(bytes, {kMatrices, kWidth, table})) << "half as wide as the base";
  }
  model::Adapter many = some_adapter(table);  // whose places beside what comes down are fewer
  many.matrices[3].tokens.resize(static_cast<std::size_t>(many.widest) + 1);
  std::iota(many.matrices[3].tokens.begin(), many.matrices[3].tokens.end(), 0);
  many.matrices[3].rows.resize(static_cast<std::size_t>(kWidth * kernels::whole_column_groups(many.widest + 1)));
  write_adapter(7, many, bytes);
  EXPECT_FALSE(read_adapter(bytes, {kMatrices, kWidth, table}));
}

model::KvGroups groups_of(std::int32_t heads) {
  model::KvGroups groups = model::KvGroups::one({.layers = 3, .kv_heads = heads, .head_dim = 16, .type = kernels::KvType::kInt8});
  groups.groups.push_back({{}, {.layers = 2, .kv_heads = 1, .head_dim = 32, .type = kernels::KvType::kInt8}});  // of which each has all
  return groups;
}

TEST(RankBlocks, PartsOfAllRanksAreTheBlockOfOne) {
  const auto blocks = RankBlocks::of(groups_of(4), groups_of(2), 2);
  ASSERT_TRUE(blocks.has_value()) << blocks.error().message;
  for (const std::int32_t group : {0, 1}) {
    Bytes whole(blocks->whole_bytes(group)), again(whole.size());
    for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = static_cast<std::byte>(i * 7 + i / 256);
    for (std::int32_t rank = 0; rank < 2; ++rank) {
      Bytes part(blocks->part_bytes(group));
      blocks->take(rank, group, whole.data(), part.data());
      blocks->put(rank, group, part.data(), again.data());
    }
    EXPECT_EQ(again, whole) << group;
  }
  // The second rank has the third and the fourth head of each layer.
  Bytes whole(blocks->whole_bytes(0)), part(blocks->part_bytes(0));
  const std::size_t head = groups_of(4).layout(0).head_bytes();
  whole[2 * head] = std::byte{1};
  whole[4 * head + 3 * head] = std::byte{2};
  blocks->take(1, 0, whole.data(), part.data());
  EXPECT_EQ(part[0], std::byte{1});
  EXPECT_EQ(part[2 * head + head], std::byte{2});
}

TEST(RankBlocks, WhatIsStoredInAnotherWayIsRefused) {
  EXPECT_FALSE(RankBlocks::of(groups_of(4), groups_of(1), 2));
  EXPECT_FALSE(RankBlocks::of(groups_of(4), model::KvGroups::one(groups_of(2).layout(0)), 2));
}

TEST(RankChannels, GiveTheBytesOfAMessageAway) {
  auto listener = Listener::open("127.0.0.1:0");
  ASSERT_TRUE(listener);
  Channel there = Channel::connect(listener->address()).value();
  Channel here = listener->accept().value();
  const Bytes sent(1000, std::byte{7});
  for (const int message : {0, 1}) {
    there.send(Kind::kTensors, sent).value();
    const auto received = here.receive();
    ASSERT_TRUE(received) << message;
    EXPECT_EQ(here.take_bytes(), sent) << message;
    EXPECT_EQ((*received)->bytes.capacity(), 0U) << message;
  }
}

// Whoever connects with this greeting, and what it does then; without a word, it listens until the group ends. Likewise on its second line.
using Deeds = std::function<void(Channel&)>;
void listen(Channel& channel) {
  while (channel.receive()) {
  }
}

std::thread visitor(const Listener& listener, Greeting greeting, Deeds then = listen, Deeds beside = listen) {
  return std::thread(
      [address = listener.address(), greeting = std::move(greeting), then = std::move(then), beside = std::move(beside)]() mutable {
    auto passes = Channel::connect(address);
    auto second = Channel::connect(address);
    if (!passes || !second) return;  // the group has been complete without it
    Bytes bytes;
    for (Channel* line : {&*passes, &*second}) {
      greeting.line = line == &*second ? 1 : 0;
      write(greeting, bytes);
      (void)line->send(Kind::kGreeting, bytes);  // it may have been turned away
    }
    std::thread other([&] { beside(*second); });
    then(*passes);
    *passes = Channel();
    other.join();
  });
}

// Two ranks, which are threads that do as they are told here.
struct TwoRanks {
  explicit TwoRanks(Deeds first, Deeds second, GroupOptions options = {}) : TwoRanks({first, listen}, {second, listen}, options) {}
  TwoRanks(std::array<Deeds, 2> first, std::array<Deeds, 2> second, GroupOptions options = {}) {
    first_ = visitor(listener_, {"secret", BRAID_VERSION, 0, 2}, first[0], first[1]);
    second_ = visitor(listener_, {"secret", BRAID_VERSION, 1, 2}, second[0], second[1]);
    group = RankGroup::admit(listener_, "secret", options).value();
  }
  ~TwoRanks() {
    group.reset();
    first_.join();
    second_.join();
  }
  TwoRanks(const TwoRanks&) = delete;
  TwoRanks& operator=(const TwoRanks&) = delete;

 private:
  Listener listener_ = Listener::open("127.0.0.1:0").value();
  std::thread first_, second_;

 public:
  std::unique_ptr<RankGroup> group;
};

template <class Value>
void say(Channel& channel, Kind kind, const Value& value) {
  Bytes bytes;
  write(value, bytes);
  channel.send(kind, bytes).value();
}

Bytes image_of_progress() {
  Bytes bytes;
  write(LoadStage{"weights", 1, 2}, bytes);
  return bytes;
}

bool can_be_read(int descriptor, std::chrono::milliseconds limit) {
  pollfd one{descriptor, POLLIN, 0};
  return poll(&one, 1, static_cast<int>(limit.count())) > 0;
}

TEST(RankGroups, AdmitWhoKnowsTheKey) {
  std::optional<Listener> listener = Listener::open("127.0.0.1:0").value();
  std::thread stranger = visitor(*listener, {"guessed", BRAID_VERSION, 0, 2});
  std::thread first = visitor(*listener, {"secret", BRAID_VERSION, 0, 2});
  std::thread second = visitor(*listener, {"secret", BRAID_VERSION, 1, 2});
  {
    const auto group = RankGroup::admit(*listener, "secret", {.ranks = 2});
    EXPECT_TRUE(group.has_value()) << group.error().message;
  }
  listener.reset();  // whoever came last was not let in
  for (std::thread* one : {&stranger, &first, &second}) one->join();
}

TEST(RankGroups, RefuseAnotherVersion) {
  std::optional<Listener> listener = Listener::open("127.0.0.1:0").value();
  std::thread old = visitor(*listener, {"secret", "0.0.1", 0, 1});
  const auto group = RankGroup::admit(*listener, "secret", {.ranks = 1});
  ASSERT_TRUE(group.has_error());
  EXPECT_NE(group.error().message.find("is braid 0.0.1"), std::string::npos) << group.error().message;
  listener.reset();
  old.join();
}

TEST(RankGroups, SayWhoIsLost) {
  const TwoRanks ranks(listen, [](Channel& channel) { (void)channel.receive(); });  // hears the question, and is gone
  ranks.group->tell(Kind::kLogits, {}).value();
  const auto values = ranks.group->values(0);
  ASSERT_TRUE(values.has_error());
  EXPECT_NE(values.error().message.find("rank 1 of 2 is lost"), std::string::npos) << values.error().message;
}

TEST(RankGroups, WaitUntilAllHaveComputedAPass) {
  std::promise<void> slow;
  const auto answers = [](double seconds) {
    return [seconds](Channel& channel) {
      (void)channel.receive();
      say(channel, Kind::kDone, Times{.compute = seconds, .exchange = 2 * seconds});
      listen(channel);
    };
  };
  const TwoRanks ranks(answers(1.0), [&, later = answers(3.0)](Channel& channel) {
    slow.get_future().wait();
    later(channel);
  });
  std::thread releases([&] { slow.set_value(); });
  const auto times = ranks.group->run({});
  releases.join();
  ASSERT_TRUE(times.has_value()) << times.error().message;
  ASSERT_EQ(times->size(), 2U);
  EXPECT_EQ((*times)[0].compute, 1.0);
  EXPECT_EQ((*times)[1].exchange, 6.0);
}

TEST(RankGroups, OneThatSaysNothingForTooLongIsLost) {
  const TwoRanks ranks(listen, listen, {.answer_limit = std::chrono::milliseconds(20)});
  const auto times = ranks.group->run({});
  ASSERT_TRUE(times.has_error());
  EXPECT_EQ(times.error().message, "rank 0 of 2 is lost: it does not answer");
}

TEST(RankGroups, TellWhatAFailedRankSaid) {
  const TwoRanks ranks(
      [](Channel& channel) {
    (void)channel.receive();
    const std::string sentence = "rank 0: the weights are gone";
    (void)channel.send(Kind::kFailure, std::as_bytes(std::span(sentence)));
      },
      listen);
  const auto times = ranks.group->run({});
  ASSERT_TRUE(times.has_error());
  EXPECT_EQ(times.error().message, "rank 0: the weights are gone");
}

TEST(RankGroups, AreWatchedWhileNobodyAsks) {
  std::promise<void> leave;
  const TwoRanks ranks(
      [](Channel& channel) {
    say(channel, Kind::kDone, Times{});  // words alone are no end
    listen(channel);
      },
      [&](Channel&) { leave.get_future().wait(); });
  EXPECT_TRUE(ranks.group->values(0).has_error());  // these words have come
  EXPECT_FALSE(can_be_read(ranks.group->watch().handle(), std::chrono::milliseconds(0)));
  EXPECT_EQ(ranks.group->watch().who_ended(), std::nullopt);
  leave.set_value();
  ASSERT_TRUE(can_be_read(ranks.group->watch().handle(), std::chrono::seconds(60)));
  EXPECT_EQ(ranks.group->watch().who_ended(), "rank 1 of 2 is lost: it has ended");
}

TEST(RankGroups, AreNotWaitedForOnceAbandoned) {
  const TwoRanks ranks(listen, listen);
  std::thread other([&] { ranks.group->abandon(); });
  EXPECT_TRUE(ranks.group->run({}).has_error());  // in far less than the 30 s of a pass
  other.join();
}

TEST(RankGroups, WhatIsHandedOutReachesAllOrIsRefused) {
  const auto answers = [](std::vector<std::string> refusals) {
    return [refusals = std::move(refusals)](Channel& channel) {
      for (const std::string& refusal : refusals) {
        if (!channel.receive()) return;
        (void)channel.send(refusal.empty() ? Kind::kTaken : Kind::kRefused, std::as_bytes(std::span(refusal)));
      }
      listen(channel);
    };
  };
  const TwoRanks ranks({listen, answers({"", "", ""})}, {listen, answers({"", "not enough memory", ""})});
  EXPECT_TRUE(ranks.group->hand_out({{Kind::kAdapter, {}}}));
  const auto refused = ranks.group->hand_out({{Kind::kAdapter, {}}});
  ASSERT_TRUE(refused.has_error());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(refused.error().message, "rank 1: not enough memory");
  EXPECT_TRUE(ranks.group->hand_out({{Kind::kAdapter, {}}})) << "the next one is answered by its own words";
}

TEST(RankGroups, ARankThatIsLostWhileSomethingIsHandedOutIsSaid) {
  const TwoRanks ranks({listen, listen}, {listen, [](Channel& channel) { (void)channel.receive(), channel = Channel(); }});
  const auto lost = ranks.group->hand_out({{Kind::kAdapter, {}}});
  ASSERT_TRUE(lost.has_error());
  EXPECT_EQ(lost.error().code, ErrorCode::kModelNotLoaded);
  EXPECT_THAT(lost.error().message, testing::HasSubstr("rank 1 of 2 is lost"));
  EXPECT_TRUE(can_be_read(ranks.group->watch().handle(), std::chrono::seconds(60))) << "passes go on without it";
}

TEST(RankGroups, AnAnswerThatComesTooLateIsNotTakenForTheNextOne) {
  std::promise<void> late;
  const auto takes = [](Channel& channel) {
    if (channel.receive()) (void)channel.send(Kind::kTaken, {});
    listen(channel);
  };
  const auto takes_late = [&](Channel& channel) {
    (void)channel.receive();
    late.get_future().wait();
    (void)channel.send(Kind::kTaken, {});  // to nobody
    listen(channel);
  };
  const TwoRanks ranks({listen, takes_late}, {listen, takes}, {.load_limit = std::chrono::milliseconds(100)});
  const auto lost = ranks.group->hand_out({{Kind::kAdapter, {}}});
  late.set_value();
  ASSERT_TRUE(lost.has_error());
  EXPECT_EQ(lost.error().message, "rank 0 of 2 is lost: it does not answer");
  const auto next = ranks.group->hand_out({{Kind::kAdapter, {}}});
  ASSERT_TRUE(next.has_error());
  EXPECT_EQ(next.error().code, ErrorCode::kModelNotLoaded);
  EXPECT_TRUE(can_be_read(ranks.group->watch().handle(), std::chrono::seconds(60)));
}

TEST(RankGroups, ALoadTellsItsProgressAndCanBeGivenUp) {
  struct GivenUp {};
  std::vector<std::string> stages;
  GroupOptions options;
  options.progress = [&](std::string_view what, std::uint64_t done, std::uint64_t total) {
    if (total == 0) return;
    stages.push_back(fmt::format("{} {}/{}", what, done, total));
    if (done == 2) throw GivenUp();
  };
  const TwoRanks ranks(
      [](Channel& channel) {
    (void)channel.receive();
    say(channel, Kind::kProgress, LoadStage{"weights", 1, 4});
    say(channel, Kind::kProgress, LoadStage{"weights", 2, 4});
    listen(channel);
      },
      listen, options);
  EXPECT_THROW((void)ranks.group->set_up({}), GivenUp);
  EXPECT_THAT(stages, testing::Contains("weights 1/4"));
}

TEST(RankGroups, RefuseRanksWhoseBitsWouldDiffer) {
  const auto says = [](const char* isa, std::int32_t kv_type) {
    return [ready = Ready{.isa = isa, .kv_type = kv_type, .weight_bytes = 10}](Channel& channel) {
      (void)channel.receive();
      say(channel, Kind::kReady, ready);
      listen(channel);
    };
  };
  const auto of = [&](const char* isa, std::int32_t kv_type) { return TwoRanks(says("avx2", 1), says(isa, kv_type)).group->set_up({}); };
  EXPECT_TRUE(of("avx2", 1));
  const auto tier = of("avx512", 1), type = of("avx2", 3);
  ASSERT_TRUE(tier.has_error());
  EXPECT_EQ(tier.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(tier.error().message, testing::HasSubstr("rank 0 computes as avx2 and rank 1 as avx512"));
  EXPECT_TRUE(type.has_error());
}

TEST(RankGroups, PutMagnitudesTogetherThatFitAnAdapter) {
  const auto says = [](const Magnitudes& own) {
    return [own](Channel& channel) {
      (void)channel.receive();
      (void)channel.receive();
      say(channel, Kind::kTaken, own);
      listen(channel);
    };
  };
  const auto measured = [&](const Magnitudes& first, const Magnitudes& second) {
    TwoRanks ranks({listen, says(first)}, {listen, says(second)});
    RemotePasses passes(std::move(ranks.group), 100);
    model::Adapter adapter;
    adapter.matrices.resize(2);
    adapter.matrices[1].magnitude = {1.0F, 2.0F, 3.0F};
    const Result<void> done = passes.measure(adapter, *passes.loaded());
    return done ? adapter.matrices[1].magnitude : std::vector<float>();
  };
  EXPECT_EQ(measured({{{1, 0, 2}}, {4.0F, 5.0F}}, {{{1, 2, 1}}, {6.0F}}), (std::vector<float>{4.0F, 5.0F, 6.0F}));
  EXPECT_EQ(measured({{{1, 0, 2}}, {4.0F, 5.0F}}, {}), std::vector<float>()) << "one is missing";
  EXPECT_EQ(measured({{{1, 0, 2}}, {4.0F, 5.0F}}, {{{1, 2, 2}}, {6.0F, 7.0F}}), std::vector<float>()) << "one more than there are";
  EXPECT_EQ(measured({{{1, 0, 3}}, {4.0F, 5.0F}}, {}), std::vector<float>()) << "a value is missing";
  EXPECT_EQ(measured({{{2, 0, 1}}, {4.0F}}, {}), std::vector<float>()) << "of no matrix";
}

TEST(RankGroups, OneThatSaysNothingWhileItLoadsIsLostThoughOthersDo) {
  std::promise<void> over;
  const TwoRanks ranks(
      [waits = over.get_future().share()](Channel& channel) {
    while (waits.wait_for(std::chrono::milliseconds(5)) != std::future_status::ready)
      if (!channel.send(Kind::kProgress, image_of_progress())) return;
      },
      listen, {.load_limit = std::chrono::milliseconds(1000)});
  const auto ready = ranks.group->set_up({});
  over.set_value();
  ASSERT_TRUE(ready.has_error());
  EXPECT_EQ(ready.error().message, "rank 1 of 2 is lost: it says nothing while it loads");
}

TEST(RankLoop, GivesUpALoadWhoseServerIsGone) {
  Listener listener = Listener::open("127.0.0.1:0").value();
  std::optional<Channel> server, second;
  std::thread closes([&] {
    server = listener.accept().value();
    second = listener.accept().value();
    say(*server, Kind::kSetup, ranks::Setup{.model = BRAID_SOURCE_DIR "/models/demo-q8_0.gguf", .context = 64});
    server.reset();
  });
  Channel rank = Channel::connect(listener.address()).value();
  Channel beside = Channel::connect(listener.address()).value();
  closes.join();
  model::test::SharedValues none(1);
  model::test::ThreadExchange alone(none, 0);
  const auto served = serve_passes({rank, beside}, "secret", {.exchange = &alone});
  ASSERT_TRUE(served.has_error());
  EXPECT_EQ(served.error().message, "the server is gone");
}

}  // namespace
}  // namespace braid::ranks
