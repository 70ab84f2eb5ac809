// Servers beside this one: names that hang, and what is known of changes after an end of all.
#include "app/serving/peer_link.h"

#include "app/serving/change_record.h"
#include "support/folder.h"

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <fstream>
#include <future>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace braid::app {
namespace {

namespace fs = std::filesystem;

using braid::test::Folder;
using net::Change;
using net::ChangeKey;

Change change(std::uint64_t number, std::string revision, ChangeKey::Kind kind = ChangeKey::Kind::kAll, std::string node = "other") {
  Change made;
  made.number = number;
  made.node = std::move(node);
  made.model = "model";
  made.revision = std::move(revision);
  made.kind = kind;
  made.body = std::string("bytes\0of it\n", 12);
  return made;
}

std::vector<std::shared_ptr<const Change>> list_of(const std::vector<Change>& changes) {
  std::vector<std::shared_ptr<const Change>> list;
  for (const Change& one : changes) list.push_back(std::make_shared<const Change>(one));
  return list;
}

using Revisions = std::vector<std::string>;

std::vector<Change> all_of(ChangeRecord& record) {
  std::vector<Change> changes;
  record.read([&](Change one) {
    changes.push_back(std::move(one));
    return true;
  });
  std::ranges::reverse(changes);
  return changes;
}

Revisions revisions_in(const std::string& folder) {
  ChangeRecord record = ChangeRecord::open(folder).value();
  Revisions revisions;
  for (const Change& one : all_of(record)) revisions.push_back(one.revision);
  return revisions;
}

TEST(ChangeRecord, WhatIsNeededIsThereAfterwards) {
  const Folder folder;
  ChangeRecord record = ChangeRecord::open(folder.path() + "/state").value();
  EXPECT_TRUE(all_of(record).empty());
  record.keep(list_of({change(1, "a"), change(2, "b", ChangeKey::Kind::kPart)}));
  ChangeRecord again = ChangeRecord::open(folder.path() + "/state").value();
  const std::vector<Change> read = all_of(again);
  ASSERT_EQ(read.size(), 2U);
  EXPECT_TRUE(read[0].is_same(change(1, "a")));
  EXPECT_EQ(read[1].revision, "b");
  EXPECT_EQ(read[1].kind, ChangeKey::Kind::kPart);
  EXPECT_EQ(read[1].body, std::string("bytes\0of it\n", 12));
  again.keep(list_of({change(3, "c")}));
  EXPECT_EQ(revisions_in(folder.path() + "/state"), Revisions{"c"}) << "what it replaces is gone";
}

TEST(ChangeRecord, FilesThatAreNoneAreLeftAlone) {
  const Folder folder;
  ChangeRecord record = ChangeRecord::open(folder.path()).value();
  record.keep(list_of({change(1, "a")}));
  const std::string whole = folder.path() + "/" + fs::directory_iterator(folder.path())->path().filename().string();
  const std::vector<std::string> others = {folder.path() + "/empty.change", folder.path() + "/notes.txt",
                                           folder.path() + "/00000000000000000009-other.change"};
  std::ofstream{others[0]};
  std::ofstream(others[1]) << "not ours";
  fs::copy_file(whole, others[2]);
  fs::create_directory(folder.path() + "/folder.change");
  EXPECT_EQ(revisions_in(folder.path()), Revisions{"a"});
  fs::resize_file(whole, 20);
  EXPECT_EQ(revisions_in(folder.path()), Revisions{});
  ChangeRecord::open(folder.path()).value().keep({});
  for (const std::string& other : others) EXPECT_TRUE(fs::exists(other)) << other;
}

TEST(ChangeRecord, GivesOneAfterTheOtherAsLongAsTheyAreWanted) {
  const Folder folder;
  ChangeRecord record = ChangeRecord::open(folder.path()).value();
  record.keep(
      list_of({change(9, "a", ChangeKey::Kind::kPart), change(10, "b", ChangeKey::Kind::kPart), change(100, "c", ChangeKey::Kind::kPart)}));
  ChangeRecord again = ChangeRecord::open(folder.path()).value();
  Revisions given;
  again.read([&](const Change& one) {
    given.push_back(one.revision);
    if (one.revision == "b") fs::remove(folder.path() + "/00000000000000000009-other.change");  // it has not been read yet
    return given.size() < 3;
  });
  EXPECT_EQ(given, (Revisions{"c", "b"}));
  given.clear();
  again.read([&](const Change& one) { return given.push_back(one.revision), false; });
  EXPECT_EQ(given, Revisions{"c"});
}

TEST(ChangeRecord, WhatCannotBeWrittenReplacesNothing) {
  const Folder folder;
  ChangeRecord record = ChangeRecord::open(folder.path()).value();
  record.keep(list_of({change(1, "a")}));
  const fs::path in_the_way = folder.path() + "/00000000000000000002-other.change";
  fs::create_directory(in_the_way);
  record.keep(list_of({change(2, "b")}));
  EXPECT_EQ(revisions_in(folder.path()), Revisions{"a"});
}

TEST(ChangeRecord, SeveralServersMayShareAFolder) {
  const Folder folder;
  ChangeRecord one = ChangeRecord::open(folder.path()).value();
  ChangeRecord other = ChangeRecord::open(folder.path()).value();
  one.keep(list_of({change(1, "a")}));
  other.keep(list_of({change(2, "b", ChangeKey::Kind::kPart)}));
  one.keep(list_of({change(1, "a")}));
  EXPECT_EQ(revisions_in(folder.path()), (Revisions{"a", "b"}));
}

TEST(ChangeRecord, ANodesNameLeadsNowhereElse) {
  const Folder folder;
  ChangeRecord record = ChangeRecord::open(folder.path() + "/state").value();
  record.keep(list_of({change(1, "a", ChangeKey::Kind::kAll, "/../../elsewhere"), change(2, "b", ChangeKey::Kind::kPart, "..")}));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
  EXPECT_EQ(revisions_in(folder.path() + "/state").size(), 2U);
}

TEST(ChangeRecord, AFolderThatCannotBeIsToldAtTheStart) {
  const Folder folder;
  std::ofstream(folder.path() + "/file");
  EXPECT_FALSE(ChangeRecord::open(folder.path() + "/file/state"));
}

// A loop with a thread, as a server's.
struct Loop {
  ~Loop() { end(); }
  void end() {
    work.reset();
    if (thread.joinable()) thread.join();
  }
  boost::asio::io_context context;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{context.get_executor()};
  std::thread thread{[this] { context.run(); }};
};

TEST(PeerLink, ItsEndWaitsForNoResolver) {
  struct Hanging {
    std::promise<void> begun;
    std::promise<void> release;
    const std::shared_future<void> released{release.get_future()};
  };
  const auto hanging = std::make_shared<Hanging>();
  {
    Loop loop;
    PeerOptions options;
    options.nodes = {"nodes.example:8000"};
    const auto link = PeerLink::begin(loop.context, options,
                                      {.key = {},
                                       .ca_file = {},
                                       .changes = std::make_shared<net::Changes>(),
                                       .record = {},
                                       .catch_up = {},
                                       .resolve =
                                           [hanging](const std::string& host) {
      EXPECT_EQ(host, "nodes.example");
      hanging->begun.set_value();
      hanging->released.wait();
      return std::vector<std::string>();
                                       }})
        .value();
    hanging->begun.get_future().wait();
    link->end();
    loop.end();
  }
  hanging->release.set_value();
}

TEST(PeerLink, WhatWasKeptIsKnownBeforeAnyOtherIsAsked) {
  const Folder folder;
  ChangeRecord::open(folder.path()).value().keep(list_of({change(1, "a"), change(2, "b", ChangeKey::Kind::kPart)}));
  const auto changes = std::make_shared<net::Changes>();
  std::promise<std::size_t> known;
  bool is_told = false;
  {
    Loop loop;
    PeerOptions options;
    options.nodes = {"127.0.0.1:1"};
    const auto link = PeerLink::begin(loop.context, options,
                                      {.key = {},
                                       .ca_file = {},
                                       .changes = changes,
                                       .record = ChangeRecord::open(folder.path()).value(),
                                       .catch_up =
                                           [&] {
      if (!std::exchange(is_told, true)) known.set_value(changes->all().size());
                                       }})
        .value();
    EXPECT_EQ(known.get_future().get(), 2U);
    link->end();
    loop.end();
    changes->note(change(0, "c"));  // and at its end it keeps what it has not yet
  }
  EXPECT_EQ(revisions_in(folder.path()), Revisions{"c"});
}

TEST(PeerLink, WhatTheLoopHasNotYetGotIsKept) {
  const Folder folder;
  ChangeRecord::open(folder.path()).value().keep(list_of({change(1, "a")}));
  boost::asio::io_context loop;  // which ends before it has run
  PeerOptions options;
  options.nodes = {"127.0.0.1:1"};
  PeerLink::Parts parts;
  parts.changes = std::make_shared<net::Changes>();
  parts.record = ChangeRecord::open(folder.path()).value();
  PeerLink::begin(loop, options, std::move(parts)).value().reset();
  EXPECT_EQ(revisions_in(folder.path()), Revisions{"a"});
}

}  // namespace
}  // namespace braid::app
