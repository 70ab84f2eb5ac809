// A whole server with a fake engine, and one client over loopback whose bytes, fragments and way to leave are the fuzzer's.
#include "fuzz/require.h"
#include "net/test_server.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

namespace braid::test {
namespace {

using Bytes = std::span<const std::uint8_t>;

net::ServerOptions small_limits() {
  net::ServerOptions options = test_options();
  options.max_header_bytes = 4096;
  options.max_body_bytes = 65536;
  options.max_inline_body_bytes = 4096;  // longer ones are read on the codec worker
  return options;
}

// Its loop runs in a thread of its own; wait() lets it take what has been sent.
class Victim {
 public:
  Victim() : server_(small_limits()) {}

  int connect() const {
    const int client = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server_.port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    require(client >= 0 && ::connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    return client;
  }

  void wait() {
    server_.on_loop([] {});
  }

  // After the client has gone, everything of it goes.
  void require_empty() {
    require(server_.eventually([this] {
      return server_.server().open_connections() == 0 && server_.server().open_streams() == 0 && server_.engine().live.empty();
    }));
    server_.on_loop([this] { server_.engine().submitted.clear(); });
  }

 private:
  TestServer server_;
};

// Takes what has come; false when the server has closed.
bool drain(int client, std::string& answer) {
  char buffer[16384];
  for (ssize_t got = 0; (got = recv(client, buffer, sizeof buffer, MSG_DONTWAIT)) != 0;) {
    if (got < 0) return errno == EAGAIN;
    if (answer.size() < sizeof buffer) answer.append(buffer, static_cast<std::size_t>(got));
  }
  return false;
}

void leave(int client, unsigned how) {
  if (how == 1) shutdown(client, SHUT_WR);
  if (how == 2) {
    const linger at_once = {1, 0};
    setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }
}

}  // namespace

// The first byte says how the client leaves, the second how many of the next ones are the sizes of its fragments, used in turn.
void fuzz_session(Bytes input) {
  static Victim victim;
  if (input.size() < 2) return;
  const unsigned how = input[0] % 3U;
  const std::size_t cuts = std::min<std::size_t>(input[1] % 16U, input.size() - 2);
  const Bytes sizes = input.subspan(2, cuts);
  Bytes bytes = input.subspan(2 + cuts);
  const int client = victim.connect();
  std::string answer;
  victim.wait();
  for (std::size_t i = 0; !bytes.empty(); ++i) {
    const std::size_t size = sizes.empty() ? bytes.size() : std::min<std::size_t>(1U + sizes[i % cuts], bytes.size());
    if (send(client, bytes.data(), size, MSG_NOSIGNAL) <= 0) break;
    bytes = bytes.subspan(size);
    victim.wait();
    if (!drain(client, answer)) break;
  }
  leave(client, how);
  victim.wait();
  if (how == 1) drain(client, answer);
  close(client);
  victim.require_empty();
  if (answer.empty()) return;
  require(answer.starts_with("HTTP/1.") && answer.size() > 12);
  require(answer[9] < '5' || answer.compare(9, 3, "501") == 0);  // of a coding that the server does not know
}

}  // namespace braid::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  braid::test::fuzz_session({data, size});
  return 0;
}
