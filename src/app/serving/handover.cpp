#include "app/serving/handover.h"

#include <csignal>
#include <cstdlib>
#include <spdlog/spdlog.h>
#include <utility>

namespace braid::app {
namespace {

namespace asio = boost::asio;

// While it lives, this thread blocks with nothing to lose: SIGINT and SIGTERM end the process, and SIGHUP comes afterwards.
class BlockingWait {
 public:
  BlockingWait() {
    struct sigaction end {};
    end.sa_handler = [](int) { std::_Exit(EXIT_SUCCESS); };
    sigaction(SIGINT, &end, &interrupt_);
    sigaction(SIGTERM, &end, &terminate_);
    sigset_t hangup;
    sigemptyset(&hangup);
    sigaddset(&hangup, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &hangup, &mask_);
  }
  ~BlockingWait() {
    pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
    sigaction(SIGTERM, &terminate_, nullptr);
    sigaction(SIGINT, &interrupt_, nullptr);
  }
  BlockingWait(const BlockingWait&) = delete;
  BlockingWait& operator=(const BlockingWait&) = delete;

 private:
  sigset_t mask_{};
  struct sigaction interrupt_ {};
  struct sigaction terminate_ {};
};

}  // namespace

Handover::Handover(asio::io_context& loop, const ServeOptions& options) : loop_(loop), options_(options), predecessors_end_(loop) {}

Result<void> Handover::find() {
  if (const Result<void> activated = take_activated(); !activated) return activated;
  return find_predecessor();
}

Result<void> Handover::find_predecessor() {
  if (options_.takeover.empty()) return {};
  Result<std::optional<net::Predecessor>> found = [this] {
    const BlockingWait wait;
    return net::Predecessor::find(options_.takeover);
  }();
  if (!found) return found.error();
  predecessor_ = std::move(*found);
  Result<net::ListeningSocket> control = predecessor_ ? predecessor_->take_control() : net::listen_unix(options_.takeover, 0600, 16);
  if (!control) return control.error();
  control_ = std::move(*control);
  return {};
}

Result<void> Handover::take_activated() {
  Result<std::vector<net::ListeningSocket>> sockets = net::activated_sockets();
  if (!sockets) return sockets.error();
  activated_sockets_ = std::move(*sockets);
  activated_ = !activated_sockets_.empty();
  if (activated_ && options_.names_addresses)
    spdlog::warn("--host, --port, --listen and --unix-socket are not used: the service manager has opened the sockets");
  return {};
}

std::vector<net::FileDescriptor> Handover::take_disk_locks() {
  return predecessor_ ? predecessor_->take_disk_locks() : std::vector<net::FileDescriptor>();
}

std::vector<net::ListeningSocket> Handover::take_sockets() {
  std::vector<net::ListeningSocket> sockets = predecessor_ ? predecessor_->take_sockets() : std::vector<net::ListeningSocket>();
  net::add_sockets(sockets, std::move(activated_sockets_));
  return sockets;
}

void Handover::serve(std::function<void()> on_free, std::function<net::Estate()> estate, std::function<void()> on_taken) {
  if (predecessor_) {
    await_end(predecessor_->dismiss(), std::move(on_free));
    predecessor_.reset();
  }
  if (!control_) return;
  succession_ = std::make_shared<net::Succession>(loop_, std::move(*control_), std::move(estate), std::move(on_taken));
  control_.reset();
  succession_->start();
}

// The predecessor closes its end of the connection last.
void Handover::await_end(net::FileDescriptor predecessor, std::function<void()> on_free) {
  if (!on_free) return;
  predecessors_end_.assign(predecessor.release());
  predecessors_end_.async_wait(asio::posix::stream_descriptor::wait_read,
                               [this, on_free = std::move(on_free)](const boost::system::error_code& error) {
    if (error) return;  // this server ends first
    on_free();
    predecessors_end_.close();
  });
}

void Handover::stop_succession() {
  if (succession_) succession_->stop();
}

void Handover::stop() { predecessors_end_.close(); }

}  // namespace braid::app
