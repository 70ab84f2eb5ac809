#include "net/listen/listening_socket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <string_view>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

namespace braid::net {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* found) const { ::freeaddrinfo(found); }
};

Error cannot_listen(std::string_view where, std::string_view reason) {
  return Error{ErrorCode::kIo, fmt::format("cannot listen on {}: {}", where, reason), ""};
}

Error cannot_listen(std::string_view where) { return cannot_listen(where, std::strerror(errno)); }

std::string describe(const TcpAddress& address) {
  const bool is_v6 = address.host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", is_v6 ? "[" : "", address.host, is_v6 ? "]" : "", address.port);
}

// An abstract name, which has no file, is written with an @, as systemd does.
std::string path_of(const sockaddr_un& address, std::size_t length) {
  const std::string_view path(address.sun_path, length);
  return path.starts_with('\0') ? "@" + std::string(path.substr(1)) : std::string(path.substr(0, path.find('\0')));
}

// Sets port and name from the address that the socket is bound to.
void read_address(ListeningSocket& socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  if (::getsockname(socket.file.get(), address, &size) != 0) return;
  if (storage.ss_family == AF_UNIX) {
    const auto* local = reinterpret_cast<const sockaddr_un*>(&storage);
    socket.unix_path = path_of(*local, size - offsetof(sockaddr_un, sun_path));
    socket.name = socket.unix_path;
    return;
  }
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  ::getnameinfo(address, size, host.data(), host.size(), port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV);
  socket.port = static_cast<std::uint16_t>(std::atoi(port.data()));
  socket.name = describe({host.data(), socket.port});
}

// Whether somebody accepts connections there.
bool is_served(const sockaddr_un& address) {
  const FileDescriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int connected = ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  return connected == 0 || errno != ECONNREFUSED;
}

// One for each socket, however many descriptors it has.
ino_t inode_of(const ListeningSocket& socket) {
  struct stat status {};
  ::fstat(socket.file.get(), &status);
  return status.st_ino;
}

int read_count(const char* name) {
  const char* text = std::getenv(name);
  int count = 0;
  if (text != nullptr) std::from_chars(text, text + std::strlen(text), count);
  return count;
}

}  // namespace

Result<ListeningSocket> listen_tcp(const TcpAddress& address, int backlog, bool only_v6) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  if (const int failure = ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &list); failure != 0)
    return cannot_listen(describe(address), ::gai_strerror(failure));
  const std::unique_ptr<addrinfo, FreeAddresses> found(list);
  ListeningSocket socket;
  socket.file = FileDescriptor(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  const int file = socket.file.get();
  if (file < 0 || ::setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      (only_v6 && found->ai_family == AF_INET6 && ::setsockopt(file, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) != 0) ||
      ::bind(file, found->ai_addr, found->ai_addrlen) != 0 || ::listen(file, backlog) != 0)
    return cannot_listen(describe(address));
  read_address(socket);
  return socket;
}

Result<ListeningSocket> listen_unix(const std::string& path, unsigned mode, int backlog) {
  if (path.starts_with('@'))
    return cannot_listen(path,
                         fmt::format("names in the abstract namespace are only taken from systemd; a file of this name is ./{}", path));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return cannot_listen(path, fmt::format("the path of a Unix socket has at most {} bytes", sizeof address.sun_path - 1));
  path.copy(address.sun_path, path.size());
  struct stat there {};
  if (::lstat(path.c_str(), &there) == 0) {
    if (!S_ISSOCK(there.st_mode)) return cannot_listen(path, "there is a file that is no socket");
    if (is_served(address)) return cannot_listen(path, "another process listens there");
    ::unlink(path.c_str());
  }
  ListeningSocket socket;
  socket.file = FileDescriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // Nobody can connect before listen(), so the mode is in time.
  if (socket.file.get() < 0 || ::bind(socket.file.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::chmod(path.c_str(), mode) != 0 || ::listen(socket.file.get(), backlog) != 0)
    return cannot_listen(path);
  socket.name = path;
  socket.unix_path = path;
  socket.unlinks = true;
  return socket;
}

Result<ListeningSocket> adopt_socket(FileDescriptor file) {
  const auto option = [&file](int name) {
    int value = -1;
    socklen_t size = sizeof value;
    ::getsockopt(file.get(), SOL_SOCKET, name, &value, &size);
    return value;
  };
  const int family = option(SO_DOMAIN);
  if (option(SO_TYPE) != SOCK_STREAM || option(SO_ACCEPTCONN) != 1 || (family != AF_INET && family != AF_INET6 && family != AF_UNIX))
    return invalid_argument(fmt::format("file descriptor {} that was given is no stream socket that listens", file.get()));
  ListeningSocket socket;
  socket.file = std::move(file);
  read_address(socket);
  return socket;
}

void add_sockets(std::vector<ListeningSocket>& sockets, std::vector<ListeningSocket> others) {
  for (ListeningSocket& other : others) {
    const auto is_it = [id = inode_of(other)](const ListeningSocket& socket) { return inode_of(socket) == id; };
    if (std::none_of(sockets.begin(), sockets.end(), is_it)) sockets.push_back(std::move(other));
  }
}

Result<std::vector<ListeningSocket>> activated_sockets() {
  constexpr int kFirst = 3;
  const int count = read_count("LISTEN_PID") == ::getpid() ? read_count("LISTEN_FDS") : 0;
  for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) ::unsetenv(name);
  std::vector<ListeningSocket> sockets;
  for (int number = kFirst; number < kFirst + count; ++number) {
    ::fcntl(number, F_SETFD, FD_CLOEXEC);
    Result<ListeningSocket> socket = adopt_socket(FileDescriptor(number));
    if (!socket) return socket.error();
    sockets.push_back(std::move(*socket));
  }
  return sockets;
}

}  // namespace braid::net
