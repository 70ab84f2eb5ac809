#include "app/chat/remote_partner.h"

#include "app/models/remote_call.h"
#include "braid/printable.h"
#include "net/json/parse.h"

#include <csignal>
#include <cstdio>
#include <fmt/format.h>
#include <unistd.h>
#include <utility>

namespace braid::app {
namespace {

volatile std::sig_atomic_t g_stopped = 0;  // by a signal handler, which can reach nothing else

// While it lives, Ctrl-C means the end of the answer.
class Interrupt {
 public:
  Interrupt() {
    g_stopped = 0;
    struct sigaction action {};
    action.sa_handler = [](int) { g_stopped = 1; };
    ::sigaction(SIGINT, &action, &before_);
  }
  ~Interrupt() { ::sigaction(SIGINT, &before_, nullptr); }
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

 private:
  struct sigaction before_ {};
};

class RemotePartner final : public ChatPartner {
 public:
  RemotePartner(RemoteCall call, std::string model) : call_(std::move(call)), model_(std::move(model)) {}

  std::string name() const override { return model_; }
  Result<void> check_parameter(const std::string&, const Value&) const override { return {}; }  // the server does, with the next answer

  Result<std::string> answer(const ChatState& state) override {
    ValueList messages = state.messages;
    if (!state.system.empty()) messages.insert(messages.begin(), ValueDict{{"role", "system"}, {"content", state.system}});
    ValueDict body{{"model", model_}, {"messages", std::move(messages)}, {"options", state.parameters}};
    std::string spoken;
    std::string error;
    const bool terminal = ::isatty(STDOUT_FILENO) == 1;
    const Interrupt interrupt;
    const Result<void> done = call_.lines("/api/chat", std::move(body), [&](const Value& line) {
      if (const std::string fault = text_member(line, "error"); !fault.empty()) error = fault;
      const Value* said = line.find("message");
      const std::string piece = said != nullptr ? text_member(*said, "content") : "";
      fmt::print("{}", terminal ? printable(piece, "\n\t") : piece);  // what a model writes steers no terminal
      std::fflush(stdout);
      spoken += piece;
      return g_stopped == 0;
    });
    fmt::print("\n");
    if (!error.empty()) return Error{ErrorCode::kIo, error, ""};
    if (!done && done.error().code != ErrorCode::kCancelled) return done.error();
    return spoken;
  }

 private:
  RemoteCall call_;
  std::string model_;
};

}  // namespace

std::unique_ptr<ChatPartner> remote_partner(const std::string& url, const std::string& model, const DataOptions& data) {
  return std::make_unique<RemotePartner>(RemoteCall(url, data), model);
}

}  // namespace braid::app
