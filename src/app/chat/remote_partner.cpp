#include "app/chat/remote_partner.h"

#include "app/chat/printed_answer.h"
#include "app/models/remote_call.h"

#include <csignal>
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
  RemotePartner(RemoteCall call, std::string model, bool prints_json)
      : call_(std::move(call)), model_(std::move(model)), prints_json_(prints_json) {}

  std::string name() const override { return model_; }
  Result<void> check_parameter(const std::string&, const Value&) const override { return {}; }  // the server does, with the next answer

  Result<std::string> answer(const ChatState& state) override {
    ValueList messages = state.messages;
    if (!state.system.empty()) messages.insert(messages.begin(), ValueDict{{"role", "system"}, {"content", state.system}});
    ValueDict body{{"model", model_}, {"messages", std::move(messages)}, {"options", state.parameters}};
    PrintedAnswer printed(prints_json_, model_);
    std::string error;
    const Interrupt interrupt;
    const Result<void> done = call_.lines("/api/chat", std::move(body), [&](const Value& line) {
      if (const std::string fault = text_member(line, "error"); !fault.empty()) error = fault;
      const Value* said = line.find("message");
      printed.add(said != nullptr ? text_member(*said, "content") : "");
      return g_stopped == 0;
    });
    const bool is_cut = !done && done.error().code != ErrorCode::kCancelled;
    std::string spoken = printed.finish(!error.empty() || is_cut);
    if (!error.empty()) return Error{ErrorCode::kIo, error, ""};
    if (is_cut) return done.error();
    return spoken;
  }

 private:
  RemoteCall call_;
  std::string model_;
  bool prints_json_;
};

}  // namespace

std::unique_ptr<ChatPartner> remote_partner(const std::string& url, const RunOptions& options) {
  return std::make_unique<RemotePartner>(RemoteCall(url, options.data), options.model.model, options.json);
}

}  // namespace braid::app
