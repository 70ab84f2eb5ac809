// The watchdog, on ages of steps that the tests make up.
#include "app/watchdog.h"

#include "app/load_progress.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace braid::app {
namespace {

struct Watched {
  boost::asio::io_context loop;
  double age = 0.0;
  bool busy = true;
  int late = 0;
  int recovered = 0;
  int hung = 0;
  Watchdog dog;

  explicit Watched(const ServiceManager& manager)
      : dog(loop, manager, {.late = std::chrono::seconds(60), .hung = std::chrono::seconds(600), .period = std::chrono::milliseconds(1)},
            {.is_busy = [this] { return busy; },
             .step_age = [this] { return Watchdog::Seconds(age); },
             .on_late = [this](Watchdog::Seconds) { ++late; },
             .on_recovered = [this] { ++recovered; },
             .on_hung = [this](Watchdog::Seconds) { ++hung; }}) {}
};

TEST(Watchdog, TellsOfALateStepOnceAndOfItsEnd) {
  const ServiceManager manager;
  Watched watched(manager);
  watched.dog.arm();
  for (const double age : {1.0, 59.0, 61.0, 62.0, 0.1}) {
    watched.age = age;
    watched.loop.run_one();
  }
  EXPECT_EQ(watched.late, 1);
  EXPECT_EQ(watched.recovered, 1);
  EXPECT_EQ(watched.hung, 0);
  watched.age = 601.0;
  watched.loop.run_one();
  EXPECT_EQ(watched.hung, 1);
}

TEST(Watchdog, DoesNotCountTheTimeForWhichTheProcessWasStopped) {
  const ServiceManager manager;
  Watched watched(manager);
  watched.dog.arm();
  watched.age = 0.1;
  watched.loop.run_one();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // nobody looks
  watched.age = 600.2;
  watched.loop.run_one();
  EXPECT_EQ(watched.hung, 0);
  watched.age = 700.0;
  watched.loop.run_one();
  EXPECT_EQ(watched.hung, 1);
}

TEST(Watchdog, HasNoTimerWhileIdle) {
  const ServiceManager manager;
  Watched watched(manager);
  watched.dog.arm();
  watched.loop.run_one();
  watched.busy = false;
  EXPECT_EQ(watched.loop.run(), 1U) << "it looks once more and the loop has nothing left";
  watched.loop.restart();
  watched.busy = true;
  watched.dog.arm();
  EXPECT_EQ(watched.loop.run_one(), 1U);
  watched.dog.stop();
  watched.loop.run();
  EXPECT_TRUE(watched.loop.stopped());
}

// A socket of the abstract namespace, as systemd's in a container.
class Listener {
 public:
  Listener() : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    EXPECT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(sa_family_t)), 0);  // the kernel picks a name
    socklen_t length = sizeof(address);
    EXPECT_EQ(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length), 0);
    name_ = "@" + std::string(address.sun_path + 1, length - sizeof(sa_family_t) - 1);
    ::setenv("NOTIFY_SOCKET", name_.c_str(), 1);
    ::setenv("WATCHDOG_USEC", "4000000", 1);
  }
  ~Listener() {
    ::unsetenv("NOTIFY_SOCKET");
    ::unsetenv("WATCHDOG_USEC");
    ::close(socket_);
  }

  std::string received() const {
    std::array<char, 128> text{};
    const ssize_t size = ::recv(socket_, text.data(), text.size(), 0);
    return size > 0 ? std::string(text.data(), static_cast<std::size_t>(size)) : "";
  }

 private:
  int socket_;
  std::string name_;
};

TEST(ServiceManager, IsToldByDatagrams) {
  const Listener listener;
  const ServiceManager manager;
  manager.notify("READY=1");
  EXPECT_EQ(listener.received(), "READY=1");
  EXPECT_EQ(manager.watchdog_interval(), std::chrono::milliseconds(2000));
}

TEST(ServiceManager, WatchesTwiceInAnyTime) {
  const Listener listener;
  for (const auto& [allowed_us, interval_us] : {std::pair("200000", 100'000), std::pair("30000000", 15'000'000), std::pair("1", 500)}) {
    ::setenv("WATCHDOG_USEC", allowed_us, 1);
    EXPECT_EQ(ServiceManager().watchdog_interval(), std::chrono::microseconds(interval_us));
  }
}

TEST(LoadProgress, PutsTheServiceManagersTimeLimitOff) {
  const Listener listener;
  const ServiceManager manager;
  LoadProgress progress(&manager);
  EXPECT_EQ(listener.received(), "EXTEND_TIMEOUT_USEC=90000000\nSTATUS=loading model: 0%");
}

TEST(ServiceManager, WatchesThisProcessOnly) {
  const Listener listener;
  ::setenv("WATCHDOG_PID", "1", 1);
  EXPECT_EQ(ServiceManager().watchdog_interval(), std::nullopt);
  ::unsetenv("WATCHDOG_PID");
}

TEST(Watchdog, FeedsTheServiceManagerUnlessAStepIsLate) {
  const Listener listener;
  const ServiceManager manager;
  Watched watched(manager);
  watched.age = 61.0;
  watched.dog.arm();
  watched.loop.run_one();
  EXPECT_EQ(listener.received(), "");
  watched.age = 0.0;
  watched.loop.run_one();
  EXPECT_EQ(listener.received(), "WATCHDOG=1");
}

TEST(Watchdog, LooksAsOftenAtAStepThatBeginsWhileTheServiceManagerWantsNothingForLong) {
  const Listener listener;
  ::setenv("WATCHDOG_USEC", "2000000000", 1);
  const ServiceManager manager;
  Watched watched(manager);
  watched.busy = false;
  watched.dog.arm();
  watched.loop.run_one_for(std::chrono::seconds(1));
  watched.busy = true;
  watched.age = 61.0;
  watched.dog.arm();
  for (int i = 0; i < 3 && watched.late == 0; ++i) watched.loop.run_one_for(std::chrono::seconds(10));
  EXPECT_EQ(watched.late, 1);
  watched.dog.stop();
}

}  // namespace
}  // namespace braid::app
