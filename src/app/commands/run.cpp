#include "app/commands/commands.h"
#include "app/conversation.h"
#include "app/load_models.h"
#include "app/load_progress.h"
#include "braid/printable.h"

#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <iostream>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <string>
#include <unistd.h>

namespace braid::app {
namespace {

Result<SingleModel> load(const ModelOptions& options) {
  LoadProgress progress;
  return load_model(
      options, kSingleUser.max_batch,
      [&progress](std::string_view what, std::uint64_t done, std::uint64_t total) { progress.show(what, done, total); }, false);
}

// One line of stdin an answer, until its end.
int chat(Conversation& conversation, const std::string& model) {
  const bool terminal = isatty(STDIN_FILENO) == 1;
  if (terminal) fmt::print("{}: type a message; Ctrl-C stops an answer, Ctrl-D leaves, /new starts over.\n", printable(model));
  for (std::string line;;) {
    if (terminal) fmt::print("\n> ");
    std::fflush(stdout);
    if (!std::getline(std::cin, line)) break;
    if (line == "/new") conversation.forget();
    if (line.empty() || line == "/new") continue;
    if (const auto answered = conversation.answer(line); !answered) {
      report(answered.error());
      if (answered.error().code == ErrorCode::kContextLength) fmt::print(stderr, "braid: /new starts over\n");
    }
  }
  if (terminal) fmt::print("\n");
  return EXIT_SUCCESS;
}

}  // namespace

int run_command(const RunOptions& options) {
  spdlog::set_default_logger(spdlog::stderr_color_mt("braid"));
  spdlog::set_level(spdlog::level::warn);
  const auto loaded = load(options.model);
  if (!loaded) return report(loaded.error());
  Conversation conversation(loaded->model, options);
  if (options.prompt.empty()) return chat(conversation, loaded->model.id);
  const auto answered = conversation.answer(options.prompt);
  return answered ? EXIT_SUCCESS : report(answered.error());
}

}  // namespace braid::app
