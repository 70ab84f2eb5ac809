// Pieces of many connections that are sent together: by a ring in one system call, and one after the other.
#include "net/http/send_batch.h"

#include "net/http/connection.h"

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <gtest/gtest.h>
#include <iterator>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <memory>
#include <string>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace braid::net::http {
namespace {

// Two ends of a socket; sends with the first one.
class Pair final : public SendBatch::Sender {
 public:
  Pair() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends_.data()), 0); }
  ~Pair() {
    for (const int end : ends_) ::close(end);
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  void on_sent(std::size_t taken, std::string_view left, int failure) noexcept override {
    ++sent;
    bytes_taken += taken;
    rest = left;
    error = failure;
  }

  int socket() const { return ends_[0]; }
  void close_reader() { ::close(std::exchange(ends_[1], -1)); }

  std::string received() {
    std::string all;
    char bytes[4096];
    for (ssize_t count = 0; (count = ::read(ends_[1], bytes, sizeof bytes)) > 0;) all.append(bytes, static_cast<std::size_t>(count));
    return all;
  }

  int sent = 0;
  std::size_t bytes_taken = 0;
  std::string rest;
  int error = 0;

 private:
  std::array<int, 2> ends_{-1, -1};
};

class SendsTogether : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    std::unique_ptr<SendRing> ring = GetParam() ? SendRing::make() : nullptr;
    if (GetParam() && ring == nullptr) GTEST_SKIP() << "io_uring is not allowed here";
    batch = std::make_shared<SendBatch>(loop, std::move(ring));
  }

  boost::asio::io_context loop;
  std::shared_ptr<SendBatch> batch;
};

TEST_P(SendsTogether, EverySocketGetsItsOwnBytesInOrder) {
  std::vector<Pair> pairs(3 * SendRing::kDepth + 5);
  constexpr int kRounds = 4;
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const std::string piece = std::to_string(i) + "." + std::to_string(round) + (i % 7 == 0 ? std::string(3000, 'x') : "") + ";";
      batch->add(pairs[i], pairs[i].socket(), piece);
    }
    batch->send();
  }
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    std::string expected;
    for (int round = 0; round < kRounds; ++round)
      expected += std::to_string(i) + "." + std::to_string(round) + (i % 7 == 0 ? std::string(3000, 'x') : "") + ";";
    EXPECT_EQ(pairs[i].received(), expected);
    EXPECT_EQ(pairs[i].sent, kRounds);
    EXPECT_EQ(pairs[i].bytes_taken, expected.size());
    EXPECT_EQ(pairs[i].error, 0);
    EXPECT_TRUE(pairs[i].rest.empty());
  }
}

TEST_P(SendsTogether, TheyGoOutAfterTheHandlerThatAddsThem) {
  std::array<Pair, 2> pairs;
  boost::asio::post(loop, [&] {
    for (Pair& pair : pairs) batch->add(pair, pair.socket(), "a");
    EXPECT_EQ(pairs[1].received(), "");
  });
  loop.run();
  EXPECT_EQ(pairs[0].received(), "a");
  EXPECT_EQ(pairs[1].received(), "a");
}

TEST_P(SendsTogether, WhatAFullSocketDoesNotTakeComesBackAndDelaysNobody) {
  std::array<Pair, 3> pairs;
  const std::string large(8 << 20, 'x');
  batch->add(pairs[0], pairs[0].socket(), "first");
  batch->add(pairs[1], pairs[1].socket(), large);
  batch->add(pairs[2], pairs[2].socket(), "third");
  batch->send();
  EXPECT_EQ(pairs[0].received(), "first");
  EXPECT_EQ(pairs[2].received(), "third");
  EXPECT_EQ(pairs[1].error, 0);
  EXPECT_GT(pairs[1].bytes_taken, 0U);
  EXPECT_EQ(pairs[1].bytes_taken + pairs[1].rest.size(), large.size());
  batch->add(pairs[0], pairs[0].socket(), "again");
  batch->add(pairs[1], pairs[1].socket(), "more");
  batch->send();
  EXPECT_EQ(pairs[1].error, EAGAIN);
  EXPECT_EQ(pairs[1].rest, "more");
  EXPECT_EQ(pairs[0].received(), "again");
}

TEST_P(SendsTogether, AClientThatHasGoneIsAnErrorOfItsOwn) {
  std::array<Pair, 2> pairs;
  pairs[0].close_reader();
  for (Pair& pair : pairs) batch->add(pair, pair.socket(), "a");
  batch->send();
  EXPECT_EQ(pairs[0].error, EPIPE);
  EXPECT_EQ(pairs[0].rest, "a");
  EXPECT_EQ(pairs[1].error, 0);
  EXPECT_EQ(pairs[1].received(), "a");
}

TEST_P(SendsTogether, WhoIsForgottenSendsNothing) {
  std::array<Pair, 3> pairs;
  for (Pair& pair : pairs) batch->add(pair, pair.socket(), "a");
  batch->forget(pairs[1]);
  batch->send();
  EXPECT_EQ(pairs[0].received(), "a");
  EXPECT_EQ(pairs[1].received(), "");
  EXPECT_EQ(pairs[1].sent, 0);
  EXPECT_EQ(pairs[2].received(), "a");
}

// With the first end of a new pair of sockets; the other one is `client`.
std::shared_ptr<Connection> connect(boost::asio::io_context& loop, const std::shared_ptr<SendBatch>& batch, int& client) {
  std::array<int, 2> ends{-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  client = ends[1];
  return std::make_shared<Connection>(Socket(loop, boost::asio::generic::stream_protocol(AF_UNIX, 0), ends[0]), batch);
}

TEST_P(SendsTogether, NoPieceOfAClosedConnectionReachesWhoGetsItsDescriptor) {
  for (const bool says_so : {true, false}) {
    int client = -1;
    std::shared_ptr<Connection> connection = connect(loop, batch, client);
    connection->send_soon("secret");
    if (says_so) connection->close();
    connection.reset();
    Pair next;
    EXPECT_EQ(next.socket(), client - 1);  // the same number
    batch->send();
    EXPECT_EQ(next.received(), "");
    ::close(client);
  }
}

TEST_P(SendsTogether, PiecesOfOneConnectionStayInOrderWhateverItsSocketTakes) {
  int client = -1;
  const std::shared_ptr<Connection> connection = connect(loop, batch, client);
  int calls = 0;
  connection->begin_watch(4096, [&] { ++calls; });
  std::string sent;
  for (int i = 0; !connection->is_behind() && i < 100'000; ++i) {
    const std::string piece = std::to_string(i) + std::string(1000, '.');
    connection->send_soon(piece);
    sent += piece;
  }
  ASSERT_TRUE(connection->is_behind());
  EXPECT_EQ(calls, 1);
  connection->send_soon("behind that");
  sent += "behind that";
  bool has_all = false;
  boost::asio::co_spawn(
      loop, [&]() -> boost::asio::awaitable<void> { has_all = co_await connection->catch_up(std::chrono::seconds(10)); },
      boost::asio::detached);
  std::string received;
  char bytes[4096];
  for (int idle = 0; received.size() < sent.size() && idle < 10'000;) {
    loop.poll();
    const ssize_t count = ::recv(client, bytes, sizeof bytes, MSG_DONTWAIT);
    idle = count > 0 ? 0 : idle + 1;
    if (count > 0) received.append(bytes, static_cast<std::size_t>(count));
  }
  loop.poll();
  EXPECT_TRUE(has_all);
  EXPECT_EQ(received, sent);
  EXPECT_EQ(connection->bytes_written(), sent.size());
  connection->end_watch();
  connection->close();
  loop.poll();
  ::close(client);
}

// In this process from now on.
void forbid(unsigned system_call) {
  sock_filter rules[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, system_call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog filter{std::size(rules), rules};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

TEST(SendRing, IsNoneWhereAnyOfItsCallsIsForbidden) {
  for (const unsigned call : {0U + __NR_io_uring_setup, 0U + __NR_io_uring_register, 0U + __NR_io_uring_enter}) {
    const pid_t child = ::fork();
    if (child == 0) {
      forbid(call);
      ::_exit(SendRing::make() == nullptr ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0) << "system call " << call;
  }
}

INSTANTIATE_TEST_SUITE_P(Net, SendsTogether, testing::Bool(), [](const auto& way) { return way.param ? "ByRing" : "EachAlone"; });

}  // namespace
}  // namespace braid::net::http
