// A server on a free port of the loopback with a fake engine, its loop in a thread of its own.
#pragma once

#include "braid/served_model.h"
#include "net/fake_codec.h"
#include "net/fake_engine.h"
#include "net/raw_client.h"
#include "net/server/server.h"

#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace braid::test {

// Short intervals, so that a test of a timeout does not wait long.
net::ServerOptions test_options();

class TestServer {
 public:
  explicit TestServer(net::ServerOptions options = test_options(), std::vector<net::ListeningSocket> given = {});
  ~TestServer();

  std::uint16_t port() const { return port_; }
  RawClient connect(int receive_buffer_bytes = 0) const { return RawClient(port_, receive_buffer_bytes); }
  Reply ask(std::string_view bytes) const;  // on a connection of its own

  // Runs `action` on the loop and waits for it.
  void on_loop(const std::function<void()>& action);
  // Waits until `condition`, evaluated on the loop, holds; false after 10 s.
  bool eventually(const std::function<bool()>& condition);

  // Use these inside on_loop().
  FakeEngine& engine() { return engine_; }
  ServiceStatus& status() { return status_; }
  ServedModel& model() { return model_; }
  net::Server& server() { return *server_; }
  boost::asio::io_context& loop() { return loop_; }

 private:
  boost::asio::io_context loop_;
  FakeEngine engine_;
  FakeCodec codec_;
  ServedModel model_;
  ServiceStatus status_;
  std::unique_ptr<net::Server> server_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

}  // namespace braid::test
