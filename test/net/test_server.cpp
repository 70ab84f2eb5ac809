#include "net/test_server.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <future>
#include <utility>

namespace braid::test {

namespace asio = boost::asio;
using namespace std::chrono_literals;

net::ServerOptions test_options() {
  net::ServerOptions options;
  options.listen = {{"127.0.0.1", 0}};
  options.tick = 10ms;
  options.linger_timeout = 200ms;
  options.max_body_bytes = 100'000;
  return options;
}

TestServer::TestServer(net::ServerOptions options, std::vector<net::ListeningSocket> given) {
  model_ = {"fake-model", 1'700'000'000, 1000, "fake", 42, &engine_, &codec_};
  status_ = {ServiceState::kReady, "", ModelDirectory({&model_})};
  engine_.script = [](const GenerationRequest& request) {
    return events_of("Hi", FinishReason::kStop, static_cast<std::int32_t>(request.prompt.size()));
  };
  server_ = std::make_unique<net::Server>(loop_, std::move(options), status_);
  port_ = server_->start(std::move(given)).value();
  thread_ = std::thread([this] { loop_.run(); });
}

TestServer::~TestServer() {
  asio::post(loop_, [this] {
    server_->stop_accepting();
    server_->abort_connections("the test is over");
  });
  thread_.join();  // run() returns because nothing is left
}

Reply TestServer::ask(std::string_view bytes) const {
  RawClient client = connect();
  client.send(bytes);
  return client.read_reply();
}

void TestServer::on_loop(const std::function<void()>& action) {
  std::promise<void> done;
  asio::post(loop_, [&] {
    action();
    done.set_value();
  });
  done.get_future().wait();
}

bool TestServer::eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  bool holds = false;
  while (!holds && std::chrono::steady_clock::now() < deadline) {
    on_loop([&] { holds = condition(); });
    if (!holds) std::this_thread::sleep_for(1ms);  // a test thread looks at another's state
  }
  return holds;
}

}  // namespace braid::test
