// Changes of adapters and weights that servers beside each other tell of: which of them are needed, and what a server lacks.
#include "braid/weights.h"
#include "net/peers/change_text.h"
#include "net/service/changes.h"
#include "net/test_server.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace braid::test {
namespace {

using net::Change;
using net::ChangeKey;
using net::Changes;
using net::KnownChange;
using Kind = ChangeKey::Kind;

class FixedWeights final : public LiveWeights {
 public:
  explicit FixedWeights(std::string revision) { facts_.revision = std::move(revision); }
  const WeightFacts& facts() const override { return facts_; }
  void name_version(std::string) override {}
  boost::asio::awaitable<Result<WeightFacts>> update(WeightSource, UpdateMode) override { co_return facts_; }
  boost::asio::awaitable<Result<std::vector<TensorDigest>>> digests() override { co_return std::vector<TensorDigest>(); }

  WeightFacts facts_;
};

// A change of the weights of "model", or of its adapter.
Change change(std::uint64_t number, std::string revision, Kind kind = Kind::kAll, std::string adapter = {}) {
  Change made;
  made.number = number;
  made.node = "other";
  made.model = "model";
  made.adapter = std::move(adapter);
  made.revision = std::move(revision);
  made.kind = kind;
  return made;
}

std::vector<std::string> revisions_of(const Changes& changes) {
  std::vector<std::string> revisions;
  for (const auto& one : changes.all()) revisions.push_back(one->revision);
  return revisions;
}

using Revisions = std::vector<std::string>;

TEST(Peers, WhatALaterChangeReplacesIsNotNeeded) {
  Changes changes;
  changes.add(change(1, "a"));
  changes.add(change(2, "b", Kind::kPart));
  changes.add(change(3, "t", Kind::kAll, "tuned"));
  changes.add(change(4, "t2", Kind::kUpdate, "tuned"));
  changes.add(change(5, "t3", Kind::kUpdate, "tuned"));
  EXPECT_EQ(revisions_of(changes), (Revisions{"a", "b", "t", "t3"}));
  EXPECT_TRUE(changes.is_undone(change(4, "t2", Kind::kUpdate, "tuned")));
  EXPECT_FALSE(changes.is_undone(change(3, "t", Kind::kAll, "tuned")));
  changes.add(change(6, "c"));
  EXPECT_EQ(revisions_of(changes), (Revisions{"t", "t3", "c"}));
  EXPECT_TRUE(changes.is_undone(change(2, "b", Kind::kPart)));
  changes.add(change(7, "", Kind::kAll, "tuned"));
  EXPECT_EQ(revisions_of(changes), (Revisions{"c", ""}));
}

TEST(Peers, OfManyPartsTheFirstAreForgotten) {
  Changes changes;
  changes.add(change(1, "a"));
  for (std::uint64_t number = 2; number < 102; ++number) changes.add(change(number, fmt::format("{}", number), Kind::kPart));
  EXPECT_EQ(changes.all().size(), 65U);
  EXPECT_EQ(changes.all().back()->revision, "101");
}

TEST(Peers, WhatIsMadeHereIsLaterThanAllThatIsKnown) {
  Changes changes;
  int told = 0;
  changes.on_change([&told] { ++told; });
  const std::uint64_t far = std::uint64_t{1} << 60;
  changes.add(change(far, "a"));
  EXPECT_EQ(told, 0);
  changes.note(change(0, "b"));
  EXPECT_EQ(told, 1);
  EXPECT_EQ(revisions_of(changes), Revisions{"b"});
  EXPECT_EQ(changes.all().front()->number, far + 1);
  EXPECT_EQ(changes.all().front()->node, changes.node());
}

TEST(Peers, AServerSaysWhatItLacks) {
  FixedWeights weights("a");
  ServedModel model;
  model.id = "model";
  model.weights = &weights;
  ServiceStatus status{.state = ServiceState::kReady, .reason = {}, .models = ModelDirectory({&model})};
  Changes changes;
  EXPECT_EQ(changes.lack(status), "the other servers are being asked what has changed");
  changes.set_peers({});
  EXPECT_EQ(changes.lack(status), "");
  changes.set_peers({{.address = "1.2.3.4:8000", .node = "other", .changes = {KnownChange{change(1, "b"), true}}}});
  EXPECT_EQ(changes.lack(status), "the weights of 'model' here are not yet those of b");
  changes.fail(change(1, "b"), "the files differ");
  EXPECT_EQ(changes.lack(status), "the weights of 'model' could not be brought up to date: the files differ");
  weights.facts_.revision = "b";
  changes.add(change(1, "b"));
  EXPECT_EQ(changes.lack(status), "");
  weights.facts_.revision = "a";  // loaded anew
  EXPECT_FALSE(changes.in_effect(*changes.all().front(), status));
  EXPECT_NE(changes.lack(status), "");
  status.models = {};  // not loaded: nobody gets anything from it
  EXPECT_EQ(changes.lack(status), "");
  changes.set_peers({{.address = "1.2.3.4:8000", .node = "other", .changes = {KnownChange{change(1, "b"), true}}}});
  EXPECT_EQ(changes.lack(status), "");
}

TEST(Peers, WhatCouldNotBeRepeatedAndThenCouldIsNotLacking) {
  const ServiceStatus status{.state = ServiceState::kReady, .reason = {}, .models = {}};
  Changes changes;
  changes.set_peers({});
  changes.add(change(1, "a"));
  changes.fail(change(1, "a"), "the file is gone");
  EXPECT_EQ(changes.lack(status), "the weights of 'model' could not be brought up to date: the file is gone");
  changes.succeed(change(1, "a"));
  EXPECT_EQ(changes.lack(status), "");
}

TEST(Peers, WhatFailsIsTriedAgainEachTimeLater) {
  using std::chrono::seconds;
  net::Patience patience;
  const net::Patience::Clock::time_point now = net::Patience::Clock::now();
  EXPECT_FALSE(patience.holds(now));
  for (const int wait : {2, 4, 8, 16, 32, 60, 60}) {
    patience.fails(now);
    EXPECT_TRUE(patience.holds(now + seconds(wait - 1))) << wait;
    EXPECT_FALSE(patience.holds(now + seconds(wait))) << wait;
  }
}

TEST(Peers, AChangeIsReadAsItWasWritten) {
  Change written = change(7, "r\"\n", Kind::kPart, "tuned");
  written.route = Change::Route::kUpdateAdapter;
  written.body = std::string("a\0\n{", 4);
  std::string text = net::peers::text_of(written);
  const Result<Change> read = net::peers::read_change(text);
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->is_same(written) && read->is_about(written));
  EXPECT_EQ(read->revision, written.revision);
  EXPECT_EQ(read->kind, written.kind);
  EXPECT_EQ(read->route, written.route);
  EXPECT_EQ(read->body, written.body);
}

TEST(Peers, WhatIsNoChangeIsRefused) {
  const std::string good = net::peers::text_of(change(1, "a"));
  for (std::size_t length = 0; length + 1 < good.size(); ++length) {
    std::string cut = good.substr(0, length);
    EXPECT_FALSE(net::peers::read_change(cut)) << length;
    cut += '\n';
    EXPECT_FALSE(net::peers::read_change(cut)) << length;
  }
  for (const std::string_view text : {R"({"node":"x"})", R"({"node":1,"changes":[]})", R"({"node":"x","changes":[1]})", "[]", ""}) {
    std::string state(text);
    EXPECT_FALSE(net::peers::read_state(state)) << text;
  }
}

// It is a part of a file's name where changes are kept.
TEST(Peers, ANodeOfManyCharactersIsRefused) {
  for (const std::size_t length : {64U, 65U}) {
    Change made = change(1, "a");
    made.node.assign(length, 'n');
    std::string text = net::peers::text_of(made);
    EXPECT_EQ(static_cast<bool>(net::peers::read_change(text)), length == 64);
  }
}

TEST(Peers, ReadyzSaysWhatIsLacking) {
  net::ServerOptions options = test_options();
  options.changes = std::make_shared<Changes>();
  TestServer server(options);
  EXPECT_EQ(server.ask(get("/readyz")).status, 503);
  EXPECT_EQ(server.ask(get("/health")).status, 200);
  server.on_loop([&] { options.changes->set_peers({}); });
  EXPECT_EQ(server.ask(get("/readyz")).status, 200);
  const Reply state = server.ask("GET /v1/peers HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(state.status, 200);
  std::string text = state.body;
  const auto read = net::peers::read_state(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->node, options.changes->node());
}

}  // namespace
}  // namespace braid::test
