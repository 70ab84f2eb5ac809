#include "store/redis/name_lookup.h"

#include "store/bell.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <atomic>
#include <cerrno>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <system_error>
#include <thread>
#include <utility>

namespace braid::store {
namespace {

Error lookup_error(const char* sentence) { return {ErrorCode::kIo, sentence, {}}; }

bool is_number(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  return ::inet_pton(AF_INET, host.c_str(), address.data()) == 1 || ::inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
}

// Until `file` can be read. False: not by then, or `stop` could be read before.
bool wait_for(int file, int stop, NameLookup::Clock::time_point deadline) {
  for (;;) {
    const auto left = std::max(std::chrono::nanoseconds(0), std::chrono::nanoseconds(deadline - NameLookup::Clock::now()));
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec timeout{seconds.count(), (left - seconds).count()};
    std::array<pollfd, 2> files{{{file, POLLIN, 0}, {stop, POLLIN, 0}}};
    const int ready = ::ppoll(files.data(), files.size(), &timeout, nullptr);
    if (ready < 0 && errno == EINTR) continue;
    return ready > 0 && files[1].revents == 0;
  }
}

}  // namespace

std::vector<std::string> ask_system(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return {};
  std::vector<std::string> numbers;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
      std::array<char, NI_MAXHOST> text{};
      if (one->ai_family != family) continue;
      if (::getnameinfo(one->ai_addr, one->ai_addrlen, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) == 0)
        numbers.emplace_back(text.data());
    }
  }
  ::freeaddrinfo(found);
  return numbers;
}

// Shared with the thread that asks, which may be the last to have it.
struct NameLookup::Asked {
  explicit Asked(Bell bell) : told(std::move(bell)) {}

  Bell told;  // rings when it is answered
  std::vector<std::string> numbers;
  std::atomic<bool> is_answered{false};
};

NameLookup::NameLookup(std::string host, Resolver resolve) : host_(std::move(host)), resolve_(std::move(resolve)) {}

void NameLookup::begin() {
  if (asked_ != nullptr || is_number(host_)) return;
  Result<Bell> bell = Bell::make();
  if (!bell) return;
  auto asked = std::make_shared<Asked>(std::move(*bell));
  try {
    std::thread([asked, resolve = resolve_, host = host_]() noexcept {
      asked->numbers = resolve(host);
      asked->is_answered = true;
      asked->told.ring();
    }).detach();
  } catch (const std::system_error&) {
    return;
  }
  asked_ = std::move(asked);
}

Result<std::vector<std::string>> NameLookup::numbers(int stop, Clock::time_point deadline) {
  if (is_number(host_)) return std::vector<std::string>{host_};
  begin();
  if (asked_ == nullptr) return lookup_error("there is no thread or file to look its name up with");
  if (!wait_for(asked_->told.descriptor(), stop, deadline) || !asked_->is_answered)
    return lookup_error("its name is not looked up in time");
  std::vector<std::string> numbers = std::move(asked_->numbers);
  asked_.reset();
  return numbers;
}

}  // namespace braid::store
