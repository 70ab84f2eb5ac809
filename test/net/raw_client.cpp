#include "net/raw_client.h"

#include <algorithm>
#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <regex>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

namespace braid::test {

namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace

RawClient::RawClient(std::uint16_t port, int receive_buffer_bytes) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (receive_buffer_bytes > 0) ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes, sizeof receive_buffer_bytes);
  const sockaddr_in address = loopback(port);
  connect(&address, sizeof address);
}

RawClient::RawClient(int socket, std::uint16_t port) : socket_(socket) {
  const sockaddr_in address = loopback(port);
  connect(&address, sizeof address);
}

RawClient::RawClient(const Address& at) : socket_(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(at.port);
  ::inet_pton(AF_INET6, at.host.c_str(), &address.sin6_addr);
  connect(&address, sizeof address);
}

RawClient::RawClient(const std::string& unix_path) : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  unix_path.copy(address.sun_path, sizeof address.sun_path - 1);
  connect(&address, sizeof address);
}

void RawClient::connect(const void* address, std::size_t size) {
  const timeval timeout{10, 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  if (::connect(socket_, static_cast<const sockaddr*>(address), static_cast<socklen_t>(size)) != 0)
    throw std::runtime_error("cannot connect");
}

RawClient::~RawClient() {
  if (socket_ >= 0) ::close(socket_);
}

RawClient::RawClient(RawClient&& other) noexcept : socket_(std::exchange(other.socket_, -1)), input_(std::move(other.input_)) {}

bool RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool RawClient::fill() {
  char buffer[65536];
  ssize_t count = 0;
  do count = ::recv(socket_, buffer, sizeof buffer, 0);
  while (count < 0 && errno == EINTR);  // by the end of a ring that this thread has made
  if (count > 0) input_.append(buffer, static_cast<std::size_t>(count));
  return count > 0;
}

std::string RawClient::read_until(std::string_view end) {
  std::size_t found = input_.find(end);
  while (found == std::string::npos && fill()) found = input_.find(end);
  const std::size_t size = found == std::string::npos ? input_.size() : found + end.size();
  std::string text = input_.substr(0, size);
  input_.erase(0, size);
  return text;
}

std::string RawClient::read_to_close() {
  while (fill()) {
  }
  return std::exchange(input_, {});
}

bool RawClient::closed() {
  while (fill()) {
  }
  char byte = 0;
  const ssize_t count = ::recv(socket_, &byte, 1, MSG_DONTWAIT);
  return count == 0 || (count < 0 && errno != EAGAIN);
}

Reply RawClient::read_reply(bool head_only) {
  Reply reply;
  const std::string head = read_until("\r\n\r\n");
  if (head.size() < 12) return reply;
  reply.status = std::stoi(head.substr(9, 3));
  for (std::size_t at = head.find("\r\n") + 2; at + 2 < head.size();) {
    const std::size_t end = head.find("\r\n", at);
    const std::size_t colon = head.find(": ", at);
    std::string name = head.substr(at, colon - at);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    reply.headers[name] = head.substr(colon + 2, end - colon - 2);
    at = end + 2;
  }
  if (head_only || reply.status == 204) return reply;
  if (reply.headers.contains("transfer-encoding")) {
    while (true) {
      const std::string line = read_until("\r\n");
      const std::size_t size = line.size() > 2 ? std::stoul(line, nullptr, 16) : 0;
      while (input_.size() < size + 2 && fill()) {
      }
      reply.body += input_.substr(0, size);
      input_.erase(0, size + 2);
      if (size == 0) return reply;
    }
  }
  if (!reply.headers.contains("content-length")) {
    reply.body = read_to_close();
    return reply;
  }
  const std::size_t size = std::stoul(reply.headers["content-length"]);
  while (input_.size() < size && fill()) {
  }
  reply.body = input_.substr(0, size);
  input_.erase(0, size);
  return reply;
}

void RawClient::finish_sending() { ::shutdown(socket_, SHUT_WR); }

void RawClient::reset() {
  const linger now{1, 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  ::close(std::exchange(socket_, -1));
}

void RawClient::fall_silent() {
  sock_filter nothing = {BPF_RET | BPF_K, 0, 0, 0};
  const sock_fprog program{1, &nothing};
  ::setsockopt(socket_, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

std::string post(std::string_view target, std::string_view body, std::string_view headers, std::string_view version) {
  return fmt::format("POST {} HTTP/{}\r\nHost: test\r\nContent-Type: application/json\r\n{}Content-Length: {}\r\n\r\n{}", target, version,
                     headers, body.size(), body);
}

std::string from_this_machine(std::string request) {
  constexpr std::string_view kHost = "Host: test";
  return request.replace(request.find(kHost), kHost.size(), "Host: localhost");
}

std::string get(std::string_view target, std::string_view headers) {
  return fmt::format("GET {} HTTP/1.1\r\nHost: test\r\n{}\r\n", target, headers);
}

double figure(std::string_view metrics, std::string_view name) {
  const std::string begin = "\n" + std::string(name) + " ";
  const std::size_t at = metrics.find(begin);
  return at == std::string_view::npos ? -1.0 : std::stod(std::string(metrics.substr(at + begin.size(), 32)));
}

std::string normalized(std::string text) {
  static const std::regex kIds("(cmpl-|chatcmpl-|req-|msg_|resp_)[0-9a-f]{24}");
  static const std::regex kCallIds("call_[0-9A-Za-z]{24}");
  static const std::regex kCreated("\"created\":[0-9]+");
  static const std::regex kDate("Date: [^\r]*");
  text = std::regex_replace(text, kIds, "$1ID");
  text = std::regex_replace(text, kCallIds, "call_ID");
  text = std::regex_replace(text, kCreated, "\"created\":0");
  return std::regex_replace(text, kDate, "Date: NOW");
}

}  // namespace braid::test
