// A model in a program's own process, without a server: what `find_package(braid)` is for.
#pragma once

#include "braid/generation_request.h"
#include "braid/result.h"
#include "braid/token_event.h"

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>

namespace braid {

struct LocalModelOptions {
  std::string path;             // a GGUF file or a folder of the hub; empty: the model within the library, if it was built with one
  std::int32_t threads = 0;     // that compute; 0: all usable CPUs
  std::int32_t max_batch = 64;  // sequences that are computed at once; others wait
  std::int32_t context = 0;     // tokens; 0: as many as the model may have
  std::uint64_t kv_memory = 0;  // bytes; 0: half of what is left when the weights are loaded
};

struct LocalPrompt {
  std::string text;                      // a user's message, or, where the model knows no chats, what is to be continued
  std::string system = {};               // before it; empty: none
  StopRules stop = {256, 0, false, {}};  // 256 tokens; the context bounds it, too
  SamplingParams sampling = {.temperature = 0.0F};
};

struct LocalAnswer {
  std::string text;
  FinishReason reason = FinishReason::kStop;
  Usage usage;
};

// Answers run together in one batch, by threads of the model's own. Any thread may call any member. What generate()
// returns is awaited while the model lives.
class LocalModel {
 public:
  // Takes as long as it takes. kBadFile, kUnsupported, kIo, kInvalidArgument, with a sentence.
  static Result<LocalModel> load(const LocalModelOptions& options);

  LocalModel(LocalModel&& other) noexcept;
  LocalModel& operator=(LocalModel&& other) noexcept;
  ~LocalModel();  // answers that run end with kCancelled

  // In a coroutine, which goes on where it was when the answer is whole. `on_text` gets its pieces, whole characters, as they come, on a
  // thread of the model's, and must not wait. With g++ 12 name what this returns before it is awaited: that compiler destroys some arguments
  // of an awaited call twice.
  boost::asio::awaitable<Result<LocalAnswer>> generate(LocalPrompt prompt, std::function<void(std::string_view)> on_text = {}) const;

  // The same for who has none.
  std::future<Result<LocalAnswer>> submit(LocalPrompt prompt, std::function<void(std::string_view)> on_text = {}) const;

 private:
  struct Running;
  explicit LocalModel(std::unique_ptr<Running> running);

  std::unique_ptr<Running> running_;
};

}  // namespace braid
