// Answers of a model in this process: one as it is written, then four hundred at once.
#include "braid/local_model.h"

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdio>
#include <future>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace asio = boost::asio;

// A coroutine, which may wait for other things besides.
asio::awaitable<void> tell(const braid::LocalModel& model, std::string question) {
  const auto print = [](std::string_view piece) {
    std::printf("%.*s", static_cast<int>(piece.size()), piece.data());
    std::fflush(stdout);
  };
  auto answering = model.generate({.text = std::move(question)}, print);
  const braid::Result<braid::LocalAnswer> answer = co_await std::move(answering);
  if (answer) {
    std::printf("\n%d tokens\n", answer->usage.completion_tokens);
  } else {
    std::printf("%s\n", answer.error().message.c_str());
  }
}

// Any thread may ask; all that is asked at once is computed together.
int ask_much(const braid::LocalModel& model, int thread) {
  std::vector<std::future<braid::Result<braid::LocalAnswer>>> answers;
  for (int i = 0; i < 100; ++i)
    answers.push_back(model.submit({.text = "What is " + std::to_string(thread) + " + " + std::to_string(i) + "?"}));
  int whole = 0;
  for (auto& answer : answers) whole += answer.get().has_value() ? 1 : 0;
  return whole;
}

int main(int argc, char** argv) {
  const braid::Result<braid::LocalModel> model = braid::LocalModel::load({.path = argc > 1 ? argv[1] : "", .kv_memory = 128U << 20U});
  if (!model) {
    std::fprintf(stderr, "%s\n", model.error().message.c_str());
    return 1;
  }
  asio::io_context loop;
  asio::co_spawn(loop, tell(*model, "What is 17 + 25?"), asio::detached);
  loop.run();

  std::atomic<int> whole = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&model, &whole, i] { whole += ask_much(*model, i); });
  for (std::thread& thread : threads) thread.join();
  std::printf("%d of 400 answers are whole\n", whole.load());
  return whole == 400 ? 0 : 1;
}
