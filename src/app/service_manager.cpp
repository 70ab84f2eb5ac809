#include "app/service_manager.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace braid::app {
namespace {

constexpr std::int64_t kLeastIntervalUs = 500;  // below, there would be no time for anything else

std::int64_t number_in(const char* name) {
  const char* text = std::getenv(name);
  std::int64_t number = 0;
  if (text != nullptr) std::from_chars(text, text + std::strlen(text), number);
  return number;
}

}  // namespace

ServiceManager::ServiceManager() {
  if (const char* socket = std::getenv("NOTIFY_SOCKET")) socket_ = socket;
  const std::int64_t allowed_us = number_in("WATCHDOG_USEC");
  const std::int64_t watched = number_in("WATCHDOG_PID");
  if (allowed_us > 0 && (watched == 0 || watched == getpid()))
    interval_ = std::chrono::microseconds(std::max(kLeastIntervalUs, allowed_us / 2));
}

void ServiceManager::notify(std::string_view state) const {
  sockaddr_un address{};
  if (socket_.empty() || socket_.size() >= sizeof(address.sun_path)) return;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  if (socket_.front() == '@') address.sun_path[0] = '\0';
  const int sender = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (sender < 0) return;
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  static_cast<void>(::sendto(sender, state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address), length));
  ::close(sender);
}

}  // namespace braid::app
