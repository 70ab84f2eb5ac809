// disk_bench FILE: time to the first token of a prompt that is computed, and of one whose beginning a new server finds on disk.
// Scheduler, model and store as in `braid serve --kv-disk`, without HTTP.
#include "kernels/select.h"
#include "model/kv_identity.h"
#include "model/language_model.h"
#include "sched/scheduler.h"
#include "store/block_store.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <unistd.h>
#include <utility>
#include <variant>
#include <vector>

namespace {

using namespace braid;
using Clock = std::chrono::steady_clock;

struct Options {
  std::string file;
  std::string directory;
  std::int32_t threads = 0;
  std::int32_t prefix = 1000;
  std::int32_t suffix = 16;
  int rounds = 5;
};

struct Outcome {
  double first_token_ms = 0.0;
  std::int32_t cached = 0;
};

boost::asio::awaitable<void> read(Ticket& ticket, Clock::time_point begin, Outcome& outcome) {
  for (;;) {
    const std::optional<TokenEvent> event = co_await ticket->next();
    if (!event) continue;
    if (std::holds_alternative<Token>(*event)) {
      outcome.first_token_ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    } else {
      outcome.cached = std::get<Finish>(*event).usage.cached_tokens;
      co_return;
    }
  }
}

// One life of a server that answers one prompt and writes what it has computed. The prefix is that of `round`.
Outcome serve(model::LanguageModel& model, const std::string& identity, const Options& options, int round, std::int32_t tail) {
  boost::asio::io_context loop;
  store::StoreOptions store_options;
  store_options.directory = options.directory;
  store_options.identity = identity;
  store_options.payload_bytes = model.kv_groups().block_bytes();
  store_options.most_tokens = model.context_length();
  auto store = store::BlockStore::open(store_options, store::make_io(), [&loop](std::function<void()> call) {
                 boost::asio::post(loop, std::move(call));
               }).value();
  sched::SchedulerOptions scheduler_options;
  scheduler_options.max_batch = 4;
  scheduler_options.context_length = model.context_length();
  scheduler_options.blocks = 2 * (options.prefix + options.suffix) / scheduler_options.block_tokens;
  scheduler_options.kv_identity = identity;
  scheduler_options.write_through = true;
  sched::Scheduler scheduler(loop, model, scheduler_options, store.get());
  GenerationRequest request;
  request.sampling.temperature = 0.0F;
  request.stop.max_tokens = 1;
  request.stop.ignore_eos = true;
  for (std::int32_t i = 0; i < options.prefix; ++i) request.prompt.push_back(1 + (round * 7919 + i * 31) % 30000);
  for (std::int32_t i = 0; i < options.suffix; ++i) request.prompt.push_back(1 + (tail * 101 + i * 17) % 30000);
  Outcome outcome;
  const Clock::time_point begin = Clock::now();
  Ticket ticket = scheduler.submit(std::move(request)).value();
  boost::asio::co_spawn(loop, read(ticket, begin, outcome), boost::asio::detached);
  scheduler.begin_drain();
  loop.run();
  std::fprintf(stderr, "%s: first token after %.1f ms, %d tokens cached\n", store->io_name(), outcome.first_token_ms, outcome.cached);
  return outcome;
}

// So that the next life reads from the disk and not from the system's memory.
void leave_page_cache(const std::string& directory) {
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const int file = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    ::fdatasync(file);
    ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    ::close(file);
  }
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Time to the first token, cold and from disk");
  app.add_option("file", options.file, "GGUF file")->required();
  app.add_option("--kv-disk", options.directory, "Folder for the blocks")->required();
  app.add_option("--threads", options.threads, "0: all usable CPUs");
  app.add_option("--prefix", options.prefix, "Tokens that are found again");
  app.add_option("--suffix", options.suffix, "Tokens that are not");
  app.add_option("--rounds", options.rounds, "Of each kind, in turn");
  CLI11_PARSE(app, argc, argv);

  const auto file = files::GgufFile::open(options.file).value();
  model::LoadOptions load;
  load.threads = options.threads > 0 ? options.threads : kernels::usable_cpus();
  load.context_length = 2048;
  load.max_batch = 4;
  const auto model = model::LanguageModel::load(file, kernels::best_kernel_table(), load).value();
  model->allocate_kv(2 * (options.prefix + options.suffix) / load.block_tokens).value();
  kernels::ThreadTeam team(load.threads);
  const std::string identity = model::kv_identity(model::model_revision(file, team), *model);
  std::vector<double> cold, restored;
  for (int round = 0; round < options.rounds; ++round) {
    cold.push_back(serve(*model, identity, options, round, 1).first_token_ms);
    leave_page_cache(options.directory);
    restored.push_back(serve(*model, identity, options, round, 2).first_token_ms);
  }
  std::printf("%d + %d tokens, medians of %d: cold %.1f ms, from disk %.1f ms, ratio %.3f\n", options.prefix, options.suffix,
              options.rounds, median(cold), median(restored), median(restored) / median(cold));
  return 0;
}
