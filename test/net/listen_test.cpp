// How connections reach the server: addresses, Unix sockets and who may use them, sockets that pass between processes.
#include "net/http/capability.h"
#include "net/listen/listening_socket.h"
#include "net/listen/takeover.h"
#include "net/listen/trusted_peer.h"
#include "net/test_server.h"
#include "support/folder.h"

#include <boost/asio/executor_work_guard.hpp>
#include <cstddef>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <future>
#include <gmock/gmock.h>
#include <limits>
#include <memory>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <optional>
#include <poll.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <sstream>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <thread>

namespace braid::test {
namespace {

using namespace std::chrono_literals;
using net::FileDescriptor;
using net::ListeningSocket;
using testing::HasSubstr;

int option(int socket, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  ::getsockopt(socket, level, name, &value, &size);
  return value;
}

TEST(Listen, ServesSeveralAddressesOfBothFamilies) {
  net::ServerOptions options = test_options();
  options.listen = {{"127.0.0.1", 0}, {"127.0.0.1", 0}, {"::1", 0}};
  TestServer server(options);
  std::vector<std::string> addresses;
  server.on_loop([&] { addresses = server.server().addresses(); });
  ASSERT_EQ(addresses.size(), 3U);
  EXPECT_THAT(addresses[2], HasSubstr("http://[::1]:"));
  const auto second = static_cast<std::uint16_t>(std::stoi(addresses[1].substr(addresses[1].rfind(':') + 1)));
  EXPECT_NE(second, server.port());
  RawClient client(second);
  client.send(get("/health"));
  EXPECT_EQ(client.read_reply().status, 200);
  const auto sixth = static_cast<std::uint16_t>(std::stoi(addresses[2].substr(addresses[2].rfind(':') + 1)));
  RawClient v6(RawClient::Address{"::1", sixth});
  v6.send(get("/health"));
  EXPECT_EQ(v6.read_reply().status, 200);
}

TEST(Listen, OnePortServesBothWildcards) {
  const auto v4 = net::listen_tcp({"0.0.0.0", 0}, 16, false);
  ASSERT_TRUE(v4);
  EXPECT_TRUE(net::listen_tcp({"::", v4->port}, 16, true));
  const auto taken = net::listen_tcp({"0.0.0.0", v4->port}, 16, false);
  ASSERT_FALSE(taken);
  EXPECT_THAT(taken.error().message, HasSubstr(std::to_string(v4->port)));
}

TEST(Listen, AUserTimeoutBeyondTheSystemsIsTheSystemsLongest) {
  net::ServerOptions options = test_options();
  options.tcp_user_timeout = std::chrono::days(30);  // more milliseconds than an int has
  TestServer server(options);
  server.on_loop([&] {
    const std::vector<ListeningSocket> copies = server.server().duplicate_sockets();
    EXPECT_EQ(option(copies.at(0).file.get(), IPPROTO_TCP, TCP_USER_TIMEOUT), std::numeric_limits<int>::max());
  });
}

TEST(Listen, ConnectionsInheritWhatFindsSilentPeers) {
  net::ServerOptions options = test_options();
  options.tcp_user_timeout = 7000ms;
  options.tcp_keepalive = 3000ms;
  TestServer server(options);
  std::vector<ListeningSocket> copies;
  server.on_loop([&] {
    copies = server.server().duplicate_sockets();
    server.server().leave_sockets();  // so that the connection is accepted here
  });
  const RawClient client = server.connect();
  pollfd arrived{copies.at(0).file.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&arrived, 1, 10'000), 1);
  const FileDescriptor accepted(::accept(copies.at(0).file.get(), nullptr, nullptr));
  ASSERT_GE(accepted.get(), 0);
  EXPECT_EQ(option(accepted.get(), IPPROTO_TCP, TCP_NODELAY), 1);
  EXPECT_EQ(option(accepted.get(), IPPROTO_TCP, TCP_USER_TIMEOUT), 7000);
  EXPECT_EQ(option(accepted.get(), SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(option(accepted.get(), IPPROTO_TCP, TCP_KEEPIDLE), 3);
}

// A client whose machine has vanished: its socket hears and acknowledges nothing any more.
TEST(Listen, ASilentPeerIsGone) {
  net::ServerOptions options = test_options();
  options.tcp_user_timeout = 300ms;
  options.write_timeout = 1h;
  TestServer server(options);
  server.on_loop([&] { server.engine().script = nullptr; });
  RawClient client = server.connect();
  client.send(post("/v1/completions", R"({"prompt":"a","stream":true})"));
  ASSERT_TRUE(server.eventually([&] { return server.engine().live.size() == 1; }));
  client.fall_silent();
  server.on_loop([&] { server.engine().push(0, Token{'x', 0.0F, {}}); });
  EXPECT_TRUE(server.eventually([&] { return server.engine().live.empty() && server.server().open_connections() == 0; }));
  server.on_loop([&] { EXPECT_EQ(server.engine().cancelled, 1U); });
}

TEST(Listen, FilesThatHaveRunOutAreWaitedFor) {
  std::ostringstream log;  // of the loop's thread
  spdlog::default_logger()->sinks().push_back(std::make_shared<spdlog::sinks::ostream_sink_mt>(log, true));
  TestServer server;
  const int highest = FileDescriptor(::dup(0)).get();  // the lowest free number
  RawClient early = server.connect();
  early.send(get("/health"));
  ASSERT_EQ(early.read_reply().status, 200);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const rlimit low{static_cast<rlim_t>(highest), before.rlim_max};  // every number below is taken
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  RawClient late(socket, server.port());
  late.send(get("/health"));
  EXPECT_TRUE(server.eventually([&] { return log.str().find("cannot accept a connection") != std::string::npos; }));
  early.send(get("/health"));
  EXPECT_EQ(early.read_reply().status, 200);  // who is connected goes on
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(late.read_reply().status, 200);
  spdlog::default_logger()->sinks().pop_back();
}

class UnixSocket : public testing::Test {
 protected:
  net::ServerOptions options() const {
    net::ServerOptions options = test_options();
    options.listen.clear();
    options.unix_socket = folder / "s";
    return options;
  }
  Folder folder;
};

TEST_F(UnixSocket, AsksForItsToken) {
  TestServer server(options());
  std::string token;
  std::getline(std::ifstream(folder / "s.token"), token);
  EXPECT_EQ(token.size(), 64U);
  struct stat file {};
  ASSERT_EQ(::stat((folder / "s.token").c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777U, 0600U);
  ASSERT_EQ(::stat((folder / "s").c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777U, 0600U);
  RawClient client(folder / "s");
  client.send(get("/health"));
  EXPECT_EQ(client.read_reply().status, 401);
  client.send(get("/health", "X-Braid-Token: " + std::string(64, '0') + "\r\n"));
  EXPECT_EQ(client.read_reply().status, 401);
  client.send(get("/health", "X-Braid-Token: " + token + "\r\n"));
  EXPECT_EQ(client.read_reply().status, 200);
  client.send(post("/v1/completions", R"({"prompt":"a"})", "X-Braid-Token: " + token + "\r\n"));
  EXPECT_EQ(client.read_reply().status, 200);
}

// As systemd may pass it on: without a path, it is no less a Unix socket.
TEST_F(UnixSocket, AsksForItsTokenOnAnAbstractOne) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = '\0' + std::filesystem::path(folder / "s").filename().string() + std::to_string(::getpid());
  name.copy(address.sun_path, name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  FileDescriptor file(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(file.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(file.get(), 16), 0);
  std::vector<ListeningSocket> alone;
  alone.push_back(*net::adopt_socket(FileDescriptor(::dup(file.get()))));
  auto socket = net::adopt_socket(std::move(file));
  ASSERT_TRUE(socket);
  EXPECT_EQ(socket->unix_path, "@" + name.substr(1));
  net::ServerOptions mine = options();
  boost::asio::io_context loop;
  const ServiceStatus status;
  const auto without_file = net::Server(loop, mine, status).start(std::move(alone));
  ASSERT_FALSE(without_file);
  EXPECT_THAT(without_file.error().message, HasSubstr("name a file with --unix-token"));
  EXPECT_FALSE(std::filesystem::exists(socket->unix_path + ".token"));
  mine.unix_token = folder / "token";
  std::vector<ListeningSocket> given;
  given.push_back(std::move(*socket));
  TestServer server(mine, std::move(given));
  const FileDescriptor client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  const std::string request = get("/health");
  ASSERT_EQ(::send(client.get(), request.data(), request.size(), 0), static_cast<ssize_t>(request.size()));
  std::string answer(12, ' ');
  ASSERT_EQ(::recv(client.get(), answer.data(), answer.size(), MSG_WAITALL), static_cast<ssize_t>(answer.size()));
  EXPECT_EQ(answer, "HTTP/1.1 401");
}

TEST_F(UnixSocket, ANameWithAnAtSignIsNoFileByMistake) {
  EXPECT_THAT(net::listen_unix("@braid", 0600, 16).error().message, HasSubstr("./@braid"));
  EXPECT_FALSE(std::filesystem::exists("@braid"));
}

TEST_F(UnixSocket, ATokenFileWithoutAnEndIsRefused) {
  EXPECT_THAT(net::http::load_capability("/dev/zero").error().message, HasSubstr("its first line is longer than"));
}

TEST_F(UnixSocket, TakesATokenFromAFileOrNone) {
  std::ofstream(folder / "mine") << "a token of my own\n";
  net::ServerOptions mine = options();
  mine.unix_token = folder / "mine";
  {
    TestServer server(mine);
    RawClient client(folder / "s");
    client.send(get("/health", "X-Braid-Token: a token of my own\r\n"));
    EXPECT_EQ(client.read_reply().status, 200);
  }
  mine.unix_token = net::kNoToken;
  TestServer server(mine);
  RawClient client(folder / "s");
  client.send(get("/health"));
  EXPECT_EQ(client.read_reply().status, 200);
}

TEST_F(UnixSocket, TokensThatAreNoSecretAreRefused) {
  std::ofstream(folder / "short") << "abc\n";
  EXPECT_THAT(net::http::load_capability(folder / "short").error().message, HasSubstr("16 characters"));
  std::ofstream(folder / "zero") << std::string("a secret of sixteen\0and more\n", 29);
  EXPECT_THAT(net::http::load_capability(folder / "zero").error().message, HasSubstr("control characters"));
  std::ofstream(folder / "empty") << "";
  EXPECT_FALSE(net::http::load_capability(folder / "empty"));
  EXPECT_FALSE(net::http::load_capability(folder / "none/token"));
}

TEST_F(UnixSocket, ReplacesWhatNobodyListensOnAndRemovesItAtTheEnd) {
  const std::string path = folder / "s";
  { const auto left_behind = net::listen_unix(path, 0600, 16); }
  ASSERT_TRUE(std::filesystem::exists(path));
  {
    TestServer server(options());
    EXPECT_THAT(net::listen_unix(path, 0600, 16).error().message, HasSubstr("another process listens there"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  std::ofstream(path) << "precious";
  EXPECT_THAT(net::listen_unix(path, 0600, 16).error().message, HasSubstr("no socket"));
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(UnixSocket, TellsItsUserFromOthers) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const FileDescriptor one(ends[0]), other(ends[1]);
  EXPECT_TRUE(net::is_trusted_peer(one.get()));
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  ASSERT_EQ(::seteuid(65534), 0);
  const bool as_other = net::is_trusted_peer(one.get());
  const bool as_listed = net::is_trusted_peer(one.get(), {0});
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_FALSE(as_other);
  EXPECT_TRUE(as_listed);
}

TEST(Activation, TakesTheSocketsOfItsStarter) {
  ::unsetenv("LISTEN_PID");
  EXPECT_TRUE(net::activated_sockets()->empty());
  ::setenv("LISTEN_PID", "1", 1);  // meant for somebody else
  ::setenv("LISTEN_FDS", "1", 1);
  EXPECT_TRUE(net::activated_sockets()->empty());
  EXPECT_EQ(std::getenv("LISTEN_FDS"), nullptr);
}

// Of a predecessor, and of a service manager that gave it one of them.
TEST(Activation, ASocketThatIsGivenTwiceIsServedOnce) {
  auto one = net::listen_tcp({"127.0.0.1", 0}, 16, false);
  auto other = net::listen_tcp({"127.0.0.1", 0}, 16, false);
  ASSERT_TRUE(one && other);
  std::vector<ListeningSocket> sockets, others;
  others.push_back(*net::adopt_socket(FileDescriptor(::dup(one->file.get()))));
  others.push_back(std::move(*other));
  const std::uint16_t added = others[1].port;
  sockets.push_back(std::move(*one));
  net::add_sockets(sockets, std::move(others));
  ASSERT_EQ(sockets.size(), 2U);
  EXPECT_EQ(sockets[1].port, added);
}

TEST(Activation, RefusesWhatDoesNotListen) {
  const auto refused = net::adopt_socket(FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("no stream socket that listens"));
}

// Not in this thread: it has made the rings of other tests' servers, whose end interrupts its waits.
Result<std::optional<net::Predecessor>> find_predecessor(const std::string& path) {
  return std::async(std::launch::async, [&path] { return net::Predecessor::find(path); }).get();
}

// Two servers of one process: the second takes the sockets of the first one.
class Takeover : public testing::Test {
 protected:
  void SetUp() override {
    first.on_loop([this] {
      auto control = net::listen_unix(path, 0600, 16);
      ASSERT_TRUE(control);
      succession = std::make_shared<net::Succession>(
          first.loop(), std::move(*control),
          [this] {
        net::Estate estate{first.server().duplicate_sockets(), {}, untouched};
        if (lock.get() >= 0) estate.disk_locks.emplace_back(::dup(lock.get()));
        return estate;
          },
          [this] {
        first.server().leave_sockets();
        first.server().close_idle();
        taken = true;
      });
      succession->start();
    });
  }
  void TearDown() override {
    first.on_loop([this] {
      if (succession != nullptr) succession->stop();
    });
    work.reset();
  }

  Folder folder;
  std::string path = folder / "control";
  TestServer first;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{first.loop().get_executor()};  // also without sockets
  std::shared_ptr<net::Succession> succession;
  bool taken = false;  // of the first one's loop
  FileDescriptor lock;
  std::uint64_t untouched = 0;
};

TEST_F(Takeover, PassesTheSocketsAndRefusesNobody) {
  RawClient connected = first.connect();  // before, with its first request still to come
  ASSERT_TRUE(first.eventually([this] { return first.server().open_connections() == 1; }));
  auto found = find_predecessor(path);
  ASSERT_TRUE(found && *found) << found.error().message;
  std::vector<ListeningSocket> sockets = (*found)->take_sockets();
  ASSERT_EQ(sockets.size(), 1U);
  EXPECT_EQ(sockets[0].port, first.port());
  EXPECT_EQ((*found)->take_control().unix_path, path);
  EXPECT_EQ(first.ask(get("/health")).status, 200);
  (*found)->dismiss();
  ASSERT_TRUE(first.eventually([this] { return taken; }));
  RawClient between = first.connect();  // nobody accepts now; the system keeps it
  between.send(get("/health"));
  TestServer second(test_options(), std::move(sockets));
  EXPECT_EQ(second.port(), first.port());
  EXPECT_EQ(between.read_reply().status, 200);
  connected.send(post("/v1/completions", R"({"prompt":"a"})"));
  const Reply last = connected.read_reply();
  EXPECT_EQ(last.status, 200);
  EXPECT_EQ(last.headers.at("connection"), "close");
}

TEST_F(Takeover, ASuccessorThatFailsChangesNothing) {
  {
    const auto found = find_predecessor(path);
    ASSERT_TRUE(found && *found);
  }
  const auto again = find_predecessor(path);
  EXPECT_TRUE(again && *again);
  EXPECT_EQ(first.ask(get("/health")).status, 200);
  first.on_loop([this] { EXPECT_FALSE(taken); });
}

// Whoever is told to end meanwhile neither waits for the successor nor takes its path away.
TEST_F(Takeover, MayEndWhileItsSuccessorLoads) {
  auto found = find_predecessor(path);
  ASSERT_TRUE(found && *found) << found.error().message;
  bool had_successor = false;
  first.on_loop([&] {
    had_successor = succession->has_successor();
    succession->stop();
  });
  EXPECT_TRUE(had_successor);
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_TRUE(first.eventually([this] { return succession.use_count() == 1; })) << "it still waits for its successor";
  const FileDescriptor connection = (*found)->dismiss();
  pollfd end{connection.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&end, 1, 0), 0) << "the end is told by the destructor";
  first.on_loop([this] {
    EXPECT_FALSE(taken);
    succession = nullptr;
  });
  EXPECT_EQ(::poll(&end, 1, 30'000), 1);
}

TEST_F(Takeover, HearsASuccessorAgainWhenFilesHadRunOut) {
  std::ostringstream log;
  const auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(log);
  first.on_loop([&] { spdlog::default_logger()->sinks().push_back(sink); });  // which logs from there
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const FileDescriptor early(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const rlimit low{static_cast<rlim_t>(early.get() + 1), before.rlim_max};  // the lowest that is free has been given away
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  ASSERT_EQ(::connect(early.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_TRUE(first.eventually([&] { return log.str().find("a successor has to wait: Too many open files") != std::string::npos; }));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ::shutdown(early.get(), SHUT_RDWR);
  const auto found = find_predecessor(path);
  EXPECT_TRUE(found && *found) << found.error().message;
  first.on_loop([] { spdlog::default_logger()->sinks().pop_back(); });
}

TEST_F(Takeover, PassesTheDisksLockAndTellsWhenItIsUsedNoMore) {
  const std::string path_of_lock = folder / "lock";
  first.on_loop([&] {
    lock = FileDescriptor(::open(path_of_lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_EQ(::flock(lock.get(), LOCK_EX | LOCK_NB), 0);
  });
  auto found = find_predecessor(path);
  ASSERT_TRUE(found && *found) << found.error().message;
  const FileDescriptor passed = std::move((*found)->take_disk_locks().at(0));
  EXPECT_EQ(::flock(passed.get(), LOCK_EX | LOCK_NB), 0) << "the same lock, not another one of this file";
  EXPECT_EQ((*found)->take_sockets().size(), 1U);
  const FileDescriptor connection = (*found)->dismiss();
  ASSERT_TRUE(first.eventually([this] { return taken; }));
  pollfd end{connection.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&end, 1, 0), 0) << "the predecessor still uses it";
  first.on_loop([this] { succession = nullptr; });
  EXPECT_EQ(::poll(&end, 1, 30'000), 1);
  char byte = 0;
  EXPECT_EQ(::recv(connection.get(), &byte, 1, MSG_DONTWAIT), 0);
}

TEST_F(Takeover, TellsTheMemoryThatIsStillToBeTaken) {
  const auto told = [this](std::uint64_t bytes) {
    first.on_loop([this, bytes] { untouched = bytes; });
    const auto found = find_predecessor(path);  // which then goes
    EXPECT_TRUE(found && *found) << found.error().message;
    return (*found)->untouched();
  };
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{5} << 30, ~std::uint64_t{0}}) EXPECT_EQ(told(bytes), bytes);
}

// It may fill its pool while its successor loads: asked again, it is not counted twice.
TEST_F(Takeover, WhatIsTakenMeanwhileIsNotCountedTwice) {
  constexpr std::size_t kTaken = std::size_t{64} << 20;
  constexpr std::size_t kOthers = kTaken / 4;  // what else the process takes and gives back; the system counts pages late, too
  first.on_loop([this] { untouched = 3 * kTaken; });
  const auto found = find_predecessor(path);
  ASSERT_TRUE(found && *found) << found.error().message;
  EXPECT_GT((*found)->untouched_now(), 3 * kTaken - kOthers);
  const std::vector<char> pool(kTaken, 'x');
  EXPECT_LT((*found)->untouched_now(), 2 * kTaken + kOthers) << pool.back();
  EXPECT_GT((*found)->untouched_now(), 2 * kTaken - kOthers);
  EXPECT_EQ((*found)->untouched(), 3 * kTaken);
}

TEST(Predecessor, IsNobodyWhereNobodyListens) {
  const Folder folder;
  const auto nobody = find_predecessor(folder / "control");
  EXPECT_TRUE(nobody && !*nobody);
  const auto other = net::listen_unix(folder / "other", 0600, 16);
  std::thread answer([&] {
    const FileDescriptor accepted(::accept(other->file.get(), nullptr, nullptr));
    ::send(accepted.get(), "HTTP/1.1 400\r\n", 14, MSG_NOSIGNAL);
  });
  const auto wrong = find_predecessor(folder / "other");
  answer.join();
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("did not pass on its sockets: what it says is not what braid"));
  std::thread closing([&] { const FileDescriptor accepted(::accept(other->file.get(), nullptr, nullptr)); });
  const auto closed = find_predecessor(folder / "other");
  closing.join();
  EXPECT_THAT(closed.error().message, HasSubstr("did not pass on its sockets: it ended the connection before"));
}

TEST_F(Takeover, ASuccessorWithoutRoomForTheSocketsSaysSo) {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit few{256, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<FileDescriptor> filling;
  for (int file = 0; (file = ::dup(0)) >= 0;) filling.emplace_back(file);
  // Room for the successor's connection and the predecessor's end of it, in one process here, and for the copy of the one socket.
  for (int i = 0; i < 3; ++i) filling.pop_back();
  const auto found = find_predecessor(path);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr("this process may not open so many files"));
}

}  // namespace
}  // namespace braid::test
