// What the server and the ranks of a model say to each other.
#include "ranks/message.h"
#include "ranks/rank_group.h"

#include <gtest/gtest.h>
#include <optional>
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

TEST(RankMessages, ComeAsTheyWent) {
  Bytes bytes;
  step::Pass pass;
  write(some_pass(), bytes);
  ASSERT_TRUE(read(bytes, pass));
  ASSERT_EQ(pass.tokens.size(), 2U);
  EXPECT_EQ(pass.tokens[1].token, 7);
  EXPECT_EQ(pass.picked, std::vector<std::int32_t>{1});
  EXPECT_EQ(pass.blocks, (std::vector<std::int32_t>{4, 9}));
  EXPECT_EQ(pass.given, (std::vector<float>{0.5F, -1.0F}));
  ASSERT_EQ(pass.sequences.size(), 1U);
  EXPECT_EQ(pass.sequences[0].count, 2);
  ASSERT_EQ(pass.snapshots.size(), 1U);

  ranks::Setup setup;
  write(ranks::Setup{.model = "/models/a.gguf", .context = 4096, .threads = 3}, bytes);
  ASSERT_TRUE(read(bytes, setup));
  EXPECT_EQ(setup.model, "/models/a.gguf");
  EXPECT_EQ(setup.context, 4096);
  EXPECT_EQ(setup.threads, 3);
}

TEST(RankMessages, WhatIsCutOrHasMoreIsRefused) {
  Bytes bytes;
  write(some_pass(), bytes);
  step::Pass pass;
  for (std::size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(read(std::span(bytes).first(size), pass)) << size;
  Bytes longer = bytes;
  longer.push_back({});
  EXPECT_FALSE(read(longer, pass));
  Bytes hostile = bytes;  // a count of tokens that no memory holds
  for (std::size_t i = 0; i < 8; ++i) hostile[i] = std::byte{0xff};
  EXPECT_FALSE(read(hostile, pass));
}

// Whoever connects with this greeting.
std::thread visitor(const Listener& listener, Greeting greeting) {
  return std::thread([address = listener.address(), greeting = std::move(greeting)] {
    Channel channel = Channel::connect(address).value();
    Bytes bytes;
    write(greeting, bytes);
    channel.send(Kind::kGreeting, bytes).value();
    while (channel.receive()) {  // until the group ends
    }
  });
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
  Listener listener = Listener::open("127.0.0.1:0").value();
  std::thread old = visitor(listener, {"secret", "0.0.1", 0, 1});
  const auto group = RankGroup::admit(listener, "secret", {.ranks = 1});
  ASSERT_TRUE(group.has_error());
  EXPECT_NE(group.error().message.find("is braid 0.0.1"), std::string::npos) << group.error().message;
  old.join();
}

TEST(RankGroups, SayWhoIsLost) {
  Listener listener = Listener::open("127.0.0.1:0").value();
  std::thread first = visitor(listener, {"secret", BRAID_VERSION, 0, 2});
  std::thread second([address = listener.address()] {
    Channel channel = Channel::connect(address).value();
    Bytes bytes;
    write(Greeting{"secret", BRAID_VERSION, 1, 2}, bytes);
    channel.send(Kind::kGreeting, bytes).value();
    (void)channel.receive();  // the question
  });                         // and it is gone
  {
    const auto group = RankGroup::admit(listener, "secret", {.ranks = 2}).value();
    group->tell(Kind::kLogits, {}).value();
    const auto values = group->values();
    ASSERT_TRUE(values.has_error());
    EXPECT_NE(values.error().message.find("rank 1 of 2 is lost"), std::string::npos) << values.error().message;
  }
  first.join();
  second.join();
}

}  // namespace
}  // namespace braid::ranks
