#include "net/listen/takeover.h"

#include "net/listen/trusted_peer.h"
#include "net/log/failure.h"

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <exception>
#include <fmt/format.h>
#include <fstream>
#include <spdlog/spdlog.h>
#include <sstream>
#include <string_view>
#include <sys/socket.h>
#include <sys/un.h>
#include <system_error>
#include <utility>

namespace braid::net {
namespace {

namespace asio = boost::asio;
using asio::generic::stream_protocol;
using boost::system::error_code;

// The message is a text beside the files: this word, then for each file what it is: a socket and whether who holds it removes its path, or
// a lock of the disk tier. The first is the control socket. Then, if it is not 0, a space and Estate::untouched.
constexpr std::string_view kGreeting = "braid-takeover-1:";
constexpr char kUnlinks = 'u';
constexpr char kLeaves = '-';
constexpr char kDiskLock = 'k';
constexpr char kDismissal = 'r';
constexpr std::size_t kMaxFiles = most_passed_sockets(0) + 1;
constexpr std::size_t kMaxUntouched = 21;  // characters
constexpr timeval kPatience{60, 0};
constexpr std::chrono::milliseconds kRetryHearing{100};  // when files have run out

union Control {
  cmsghdr header;
  std::array<char, CMSG_SPACE(kMaxFiles * sizeof(int)) + CMSG_SPACE(sizeof(ucred))> bytes;
};

Error not_understood(const std::string& path, std::string_view reason) {
  return Error{ErrorCode::kIo, fmt::format("cannot take over from the server at {}: {}", path, reason), ""};
}

bool send_files(int connection, const std::string& text, const std::vector<int>& files) {
  Control control{};
  iovec part{const_cast<char*>(text.data()), text.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = &control;
  message.msg_controllen = CMSG_SPACE(files.size() * sizeof(int));
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(files.size() * sizeof(int));
  std::memcpy(CMSG_DATA(header), files.data(), files.size() * sizeof(int));
  return ::sendmsg(connection, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

struct Message {
  std::string text;
  std::vector<FileDescriptor> files;
  std::string fault;  // why it is not whole, or nothing
  pid_t sender = 0;
};

// Bytes of memory of its own; 0 where that cannot be seen.
std::uint64_t resident_bytes(pid_t process) {
  std::ifstream status(fmt::format("/proc/{}/status", process));
  std::string name;
  std::uint64_t kibibytes = 0;
  for (std::string line; process > 0 && std::getline(status, line);)
    if (std::istringstream words(line); words >> name >> kibibytes && name == "RssAnon:") return kibibytes * 1024;
  return 0;
}

std::string fault_of(ssize_t size, int flags) {
  if (size == 0) return "it ended the connection before; its log says why";
  if (size > 0) return (flags & MSG_CTRUNC) != 0 ? "this process may not open so many files" : "";
  return errno == EAGAIN || errno == EWOULDBLOCK ? "it said nothing for a minute; another successor may be loading" : std::strerror(errno);
}

Message receive_files(int connection) {
  Control control{};
  std::array<char, kGreeting.size() + kMaxFiles + kMaxUntouched> text{};
  iovec part{text.data(), text.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = &control;
  message.msg_controllen = sizeof control;
  ssize_t size = 0;
  do size = ::recvmsg(connection, &message, MSG_CMSG_CLOEXEC);
  while (size < 0 && errno == EINTR);  // a process that is stopped and goes on, for example
  std::string fault = fault_of(size, message.msg_flags);
  std::vector<FileDescriptor> files;
  pid_t sender = 0;
  if (size <= 0) return {{}, {}, std::move(fault)};
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_CREDENTIALS) {
      ucred credentials{};
      std::memcpy(&credentials, CMSG_DATA(header), sizeof credentials);
      sender = credentials.pid;
    }
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t i = 0; i < (header->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(header) + i * sizeof(int), sizeof number);
      files.emplace_back(number);
    }
  }
  return {std::string(text.data(), static_cast<std::size_t>(size)), std::move(files), std::move(fault), sender};
}

// What stands behind the greeting and a letter for each file; nothing where that is not what it should be.
std::optional<std::uint64_t> untouched_of(std::string_view text, std::size_t files) {
  if (files == 0 || !text.starts_with(kGreeting) || text.size() < kGreeting.size() + files) return std::nullopt;
  text.remove_prefix(kGreeting.size() + files);
  if (text.empty()) return 0;
  std::uint64_t bytes = 0;
  const auto [end, failure] = std::from_chars(text.data() + 1, text.data() + text.size(), bytes);
  if (text.front() != ' ' || failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return bytes;
}

}  // namespace

Result<std::optional<Predecessor>> Predecessor::find(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return not_understood(path, "its path is too long for a socket");
  path.copy(address.sun_path, path.size());
  Predecessor predecessor;
  predecessor.connection_ = FileDescriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int connection = predecessor.connection_.get();
  ::setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  constexpr int kOn = 1;
  ::setsockopt(connection, SOL_SOCKET, SO_PASSCRED, &kOn, sizeof kOn);  // who passes it on may not be who has begun to listen
  int connected = 0;
  do connected = ::connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  while (connected != 0 && errno == EINTR);
  if (connected != 0) {
    if (errno == ENOENT || errno == ECONNREFUSED) return std::optional<Predecessor>();
    return not_understood(path, std::strerror(errno));
  }
  if (!is_trusted_peer(connection)) return not_understood(path, "it belongs to another user");
  auto [text, files, fault, sender] = receive_files(connection);
  const std::optional<std::uint64_t> untouched = untouched_of(text, files.size());
  if (fault.empty() && !untouched) fault = "what it says is not what braid of this version says";
  if (!fault.empty()) return not_understood(path, "it did not pass on its sockets: " + fault);
  predecessor.estate_.untouched = *untouched;
  predecessor.process_ = sender;
  predecessor.resident_ = resident_bytes(sender);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const char kind = text[kGreeting.size() + i];
    if (kind == kDiskLock) {
      predecessor.estate_.disk_locks.push_back(std::move(files[i]));
      continue;
    }
    Result<ListeningSocket> socket = adopt_socket(std::move(files[i]));
    if (!socket) return not_understood(path, socket.error().message);
    socket->unlinks = kind == kUnlinks;
    if (i == 0) {
      predecessor.control_ = std::move(*socket);
    } else {
      predecessor.estate_.sockets.push_back(std::move(*socket));
    }
  }
  return std::optional<Predecessor>(std::move(predecessor));
}

std::uint64_t Predecessor::untouched_now() const {
  const std::uint64_t resident = resident_ > 0 ? resident_bytes(process_) : 0;
  const std::uint64_t taken = resident - std::min(resident, resident_);
  return estate_.untouched - std::min(estate_.untouched, taken);
}

FileDescriptor Predecessor::dismiss() {
  if (::send(connection_.get(), &kDismissal, 1, MSG_NOSIGNAL) != 1) spdlog::warn("the server before this one has gone by itself");
  return std::move(connection_);
}

Succession::Succession(asio::io_context& loop, ListeningSocket control, std::function<Estate()> estate, std::function<void()> on_taken)
    : loop_(loop), path_(std::move(control.unix_path)), estate_(std::move(estate)), on_taken_(std::move(on_taken)),
      acceptor_(loop, stream_protocol(AF_UNIX, 0), control.file.release()) {}

void Succession::start() { asio::co_spawn(loop_, await_successor(shared_from_this()), log_failure("waiting for a successor")); }

void Succession::stop() {
  if (!acceptor_.is_open()) return;
  if (!successor_) ::unlink(path_.c_str());
  stop_here();
  error_code ignored;
  if (successor_) successor_->cancel(ignored);
}

// As Listener::stop_here().
void Succession::stop_here() {
  error_code ignored;
  const FileDescriptor closed(acceptor_.release(ignored));
}

// One at a time; while a successor loads its model, others wait for it to succeed or to end.
asio::awaitable<void> Succession::await_successor(std::shared_ptr<Succession> self) {
  bool exhausted = false;  // told once, not at each attempt
  while (self->acceptor_.is_open()) {
    error_code failure;
    stream_protocol::socket successor(self->loop_);
    co_await self->acceptor_.async_accept(successor, asio::redirect_error(asio::use_awaitable, failure));
    if (!self->acceptor_.is_open()) co_return;
    if (failure) {
      if (!std::exchange(exhausted, true)) spdlog::warn("{}: a successor has to wait: {}", self->path_, failure.message());
      asio::steady_timer pause(self->loop_, kRetryHearing);
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, failure));
      continue;
    }
    exhausted = false;
    if (!is_trusted_peer(successor.native_handle())) {
      spdlog::warn("{}: a process of another user was turned away", self->path_);
      continue;
    }
    self->successor_.emplace(std::move(successor));
    if (co_await self->introduce()) {
      self->stop_here();
      self->on_taken_();
    } else if (self->acceptor_.is_open()) {
      self->successor_.reset();
    }
  }
}

// Passes the estate on; true when the successor serves them, false when it has gone before or stop() was called.
asio::awaitable<bool> Succession::introduce() {
  Estate estate = estate_();
  std::string text(kGreeting);
  std::vector<int> files = {acceptor_.native_handle()};
  text += kUnlinks;
  for (const ListeningSocket& socket : estate.sockets) {
    text += socket.unlinks ? kUnlinks : kLeaves;
    files.push_back(socket.file.get());
  }
  for (const FileDescriptor& lock : estate.disk_locks) {
    text += kDiskLock;
    files.push_back(lock.get());
  }
  if (estate.untouched > 0) text += fmt::format(" {}", estate.untouched);
  const bool has_all = std::find(files.begin(), files.end(), -1) == files.end();  // a copy was one file too many
  if (!has_all || !send_files(successor_->native_handle(), text, files)) {
    spdlog::warn("the sockets could not be passed on: {}", std::strerror(has_all ? errno : EMFILE));
    co_return false;
  }
  spdlog::info("a successor has the listening sockets; serving until it is ready");
  char answer = 0;
  error_code failure;
  co_await successor_->async_read_some(asio::buffer(&answer, 1), asio::redirect_error(asio::use_awaitable, failure));
  if (!failure && answer == kDismissal) co_return true;
  if (acceptor_.is_open()) spdlog::warn("the successor ended before it was ready");
  co_return false;
}

}  // namespace braid::net
