#include "ranks/channel.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utility>

namespace braid::ranks {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kSendLimit{30};

// A machine that is no longer reached is noticed within kSilence + kProbes * kProbeInterval, also while nothing is said.
constexpr int kSilence = 10;  // seconds
constexpr int kProbeInterval = 5;
constexpr int kProbes = 3;

struct Header {
  Kind kind = Kind::kFailure;
  std::uint32_t reserved = 0;
  std::uint64_t bytes = 0;
};

Error io_error(const std::string& what) { return {ErrorCode::kIo, fmt::format("{}: {}", what, std::strerror(errno)), {}}; }

struct Addresses {
  addrinfo* first = nullptr;
  ~Addresses() {
    if (first != nullptr) freeaddrinfo(first);
  }
};

Result<void> resolve(const std::string& address, bool passive, Addresses& out) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos)
    return Error{ErrorCode::kInvalidArgument, fmt::format("'{}' is no address: expected HOST:PORT", address), {}};
  addrinfo hints{};
  hints.ai_flags = passive ? AI_PASSIVE : 0;
  hints.ai_socktype = SOCK_STREAM;
  const int failed = getaddrinfo(address.substr(0, colon).c_str(), address.substr(colon + 1).c_str(), &hints, &out.first);
  if (failed != 0) return Error{ErrorCode::kIo, fmt::format("{}: {}", address, gai_strerror(failed)), {}};
  return {};
}

// Messages go out at once, and a machine that is gone is noticed.
void prepare(int socket) {
  const auto set = [socket](int level, int option, int value) { setsockopt(socket, level, option, &value, sizeof value); };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kSilence);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kProbeInterval);
  set(IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 1000 * (kSilence + kProbes * kProbeInterval));
}

// Whether something can be read or written before the end.
bool wait_for(int socket, short events, std::optional<Clock::time_point> end) {
  for (;;) {
    int left = -1;
    if (end) {
      const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(*end - Clock::now()).count();
      left = static_cast<int>(std::clamp<std::int64_t>(milliseconds, 0, 1 << 30));
    }
    pollfd one{socket, events, 0};
    const int ready = poll(&one, 1, left);
    if (ready > 0) return true;
    if (ready == 0) return errno = ETIMEDOUT, false;
    if (errno != EINTR) return false;
  }
}

}  // namespace

Channel::~Channel() {
  if (socket_ >= 0) close(socket_);
}

Channel::Channel(Channel&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), has_ended_(other.has_ended_), message_(std::move(other.message_)) {}

Channel& Channel::operator=(Channel&& other) noexcept {
  std::swap(socket_, other.socket_);
  std::swap(has_ended_, other.has_ended_);
  std::swap(message_, other.message_);
  return *this;
}

Result<Channel> Channel::connect(const std::string& address) {
  Addresses addresses;
  if (const Result<void> resolved = resolve(address, false, addresses); !resolved) return resolved.error();
  for (const addrinfo* one = addresses.first; one != nullptr; one = one->ai_next) {
    Channel channel(::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol));
    if (!channel.is_open() || ::connect(channel.socket_, one->ai_addr, one->ai_addrlen) != 0) continue;
    prepare(channel.socket_);
    return channel;
  }
  return io_error(address);
}

bool Channel::is_hung_up() const {
  pollfd one{socket_, POLLRDHUP, 0};
  return poll(&one, 1, 0) > 0;
}

void Channel::hang_up() const { ::shutdown(socket_, SHUT_RDWR); }

Result<void> Channel::send(Kind kind, std::span<const std::byte> bytes) {
  auto end = Clock::now() + kSendLimit;
  Header header{kind, 0, bytes.size()};
  std::array<std::span<const std::byte>, 2> parts{std::as_bytes(std::span(&header, 1)), bytes};
  while (!parts[0].empty() || !parts[1].empty()) {
    std::array<iovec, 2> vectors{};
    for (std::size_t i = 0; i < parts.size(); ++i) vectors[i] = {const_cast<std::byte*>(parts[i].data()), parts[i].size()};
    msghdr message{};
    message.msg_iov = vectors.data();
    message.msg_iovlen = vectors.size();
    const ssize_t sent = sendmsg(socket_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if ((errno == EAGAIN || errno == EINTR) && wait_for(socket_, POLLOUT, end)) continue;
      return io_error("a rank of the model takes nothing");
    }
    end = Clock::now() + kSendLimit;
    auto left = static_cast<std::size_t>(sent);
    for (auto& part : parts) {
      const std::size_t taken = std::min(left, part.size());
      part = part.subspan(taken);
      left -= taken;
    }
  }
  return {};
}

Result<const Channel::Message*> Channel::receive(std::optional<std::chrono::milliseconds> limit, std::uint64_t most) {
  std::optional<Clock::time_point> end;
  if (limit) end = Clock::now() + *limit;
  Header header;
  if (const Result<void> read_all = read(std::as_writable_bytes(std::span(&header, 1)), end); !read_all) return read_all.error();
  if (header.bytes > most) return Error{ErrorCode::kIo, fmt::format("a message of {} bytes, expected at most {}", header.bytes, most), {}};
  message_.kind = header.kind;
  message_.bytes.resize(static_cast<std::size_t>(header.bytes));
  if (const Result<void> read_all = read(message_.bytes, end); !read_all) return read_all.error();
  return &message_;
}

Result<void> Channel::read(std::span<std::byte> out, std::optional<Clock::time_point> end) {
  while (!out.empty()) {
    if (!wait_for(socket_, POLLIN, end)) return io_error("nothing came from the other side");
    const ssize_t got = recv(socket_, out.data(), out.size(), MSG_DONTWAIT);
    has_ended_ = got == 0;
    if (has_ended_) return Error{ErrorCode::kIo, "the other side has closed the connection", {}};
    if (got < 0 && errno != EAGAIN && errno != EINTR) return io_error("the connection broke");
    if (got > 0) out = out.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

Result<Listener> Listener::open(const std::string& address) {
  Addresses addresses;
  if (const Result<void> resolved = resolve(address, true, addresses); !resolved) return resolved.error();
  for (const addrinfo* one = addresses.first; one != nullptr; one = one->ai_next) {
    Channel channel(::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol));
    if (!channel.is_open() || bind(channel.socket(), one->ai_addr, one->ai_addrlen) != 0 || listen(channel.socket(), SOMAXCONN) != 0)
      continue;
    sockaddr_storage bound{};
    socklen_t size = sizeof bound;
    std::array<char, 16> port{};
    if (getsockname(channel.socket(), reinterpret_cast<sockaddr*>(&bound), &size) != 0 ||
        getnameinfo(reinterpret_cast<sockaddr*>(&bound), size, nullptr, 0, port.data(), port.size(), NI_NUMERICSERV) != 0)
      continue;
    return Listener(std::move(channel), fmt::format("{}:{}", address.substr(0, address.rfind(':')), port.data()));
  }
  return io_error(address);
}

Result<Channel> Listener::accept() {
  Channel channel(accept4(socket_.socket(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!channel.is_open()) return io_error("a rank was not let in");
  prepare(channel.socket());
  return channel;
}

}  // namespace braid::ranks
