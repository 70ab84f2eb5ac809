// cache_cost FILE: what the prefix cache costs requests that have nothing in common. Two schedulers, one with the cache and one without it,
// answer the same load in turns, many short rounds each, on one compute thread and one model: two copies of a model differ by more than the
// cache costs. Neither reads what the other left in the arena, because nothing is found. What counts is the processor time of the process,
// loop and strand together: neighbours on the machine move it little, and both schedulers' alike.
#include "kernels/select.h"
#include "model/language_model.h"
#include "sched/scheduler.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace {

using namespace braid;

struct Options {
  std::string file;
  int rounds = 300;
  int requests = 2;  // of a load, all at once
  std::int32_t prompt = 120;
  std::int32_t answer = 16;
  bool control = false;
  std::int32_t blocks = 256;  // few, so that the cache is full after some rounds and every new block evicts one
};

double processor_seconds() {
  timespec now;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

class Server {
 public:
  Server(model::LanguageModel& model, const Options& options, bool prefix_cache) : options_(options) {
    sched::SchedulerOptions scheduler;
    scheduler.max_batch = options.requests;
    scheduler.context_length = options.prompt + options.answer;
    scheduler.blocks = options.blocks;
    scheduler.prefix_cache = prefix_cache;
    scheduler_ = std::make_unique<sched::Scheduler>(loop_, model, scheduler);
  }
  ~Server() {
    scheduler_->begin_drain();
    loop_.run();
  }

  // Processor time of the load that `seed` stands for.
  double answer(std::mt19937::result_type seed) {
    std::mt19937 random(seed);
    const double begin = processor_seconds();
    int open = options_.requests;
    std::vector<Ticket> tickets;
    for (int i = 0; i < options_.requests; ++i) {
      GenerationRequest request;
      request.sampling.temperature = 0.0F;
      request.stop.max_tokens = options_.answer;
      request.stop.ignore_eos = true;
      for (std::int32_t t = 0; t < options_.prompt; ++t) request.prompt.push_back(static_cast<TokenId>(1 + random() % 1000));
      tickets.push_back(scheduler_->submit(std::move(request)).value());
    }
    for (Ticket& ticket : tickets) boost::asio::co_spawn(loop_, read(ticket, open), boost::asio::detached);
    while (open > 0) loop_.run_one();
    return processor_seconds() - begin;
  }

  std::uint64_t hits() const { return scheduler_->stats().cache_hit_tokens; }

 private:
  static boost::asio::awaitable<void> read(Ticket& ticket, int& open) {
    for (;;) {
      const std::optional<TokenEvent> event = co_await ticket->next();
      if (event && std::holds_alternative<Finish>(*event)) break;
    }
    --open;
  }

  const Options& options_;
  boost::asio::io_context loop_;
  std::unique_ptr<sched::Scheduler> scheduler_;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("What the prefix cache costs requests without a common beginning");
  app.add_option("file", options.file, "GGUF file")->required();
  app.add_option("--rounds", options.rounds, "Of two loads to each, in turn")->check(CLI::PositiveNumber);
  app.add_option("--requests", options.requests, "Of a load, all at once")->check(CLI::PositiveNumber);
  app.add_option("--prompt", options.prompt, "Tokens")->check(CLI::PositiveNumber);
  app.add_option("--answer", options.answer, "Tokens")->check(CLI::PositiveNumber);
  app.add_option("--blocks", options.blocks, "Of 16 positions")->check(CLI::PositiveNumber);
  app.add_flag("--control", options.control, "Both without the cache: what the method finds where there is nothing");
  CLI11_PARSE(app, argc, argv);

  const auto file = files::GgufFile::open(options.file).value();
  model::LoadOptions load;
  load.threads = 1;
  load.context_length = options.prompt + options.answer;
  load.max_batch = options.requests;
  const auto model = model::LanguageModel::load(file, kernels::best_kernel_table(), load).value();
  model->allocate_kv(options.blocks).value();
  const std::array servers{std::make_unique<Server>(*model, options, false), std::make_unique<Server>(*model, options, !options.control)};
  const int tokens = 2 * options.requests * (options.prompt + options.answer);  // of each, in a round
  const int warm_up = 2 + 2 * options.blocks * 16 / tokens;
  std::mt19937 random;
  std::vector<double> ratios;
  std::array<std::vector<double>, 2> seconds;
  for (int round = -warm_up; round < options.rounds; ++round) {
    std::array<double, 2> taken{};
    const std::size_t outer = static_cast<std::size_t>(round & 1);
    for (const std::size_t server : {outer, 1 - outer, 1 - outer, outer})  // so that what changes evenly changes both
      taken[server] += servers[server]->answer(random());
    if (round < 0) continue;
    ratios.push_back(taken[1] / taken[0]);
    for (std::size_t server = 0; server < 2; ++server) seconds[server].push_back(taken[server]);
  }
  for (auto* values : {&ratios, &seconds[0], &seconds[1]}) std::ranges::sort(*values);
  // The median lies between these order statistics with a probability of 95%.
  const auto margin = static_cast<std::size_t>(0.98 * std::sqrt(static_cast<double>(options.rounds)));
  const std::size_t middle = ratios.size() / 2;
  std::printf("%d rounds of %d tokens: %.2f us a token without, %.2f with the cache (%llu tokens found); ratio %.4f (95%%: %.4f to %.4f)\n",
              options.rounds, tokens, seconds[0][middle] * 1e6 / tokens, seconds[1][middle] * 1e6 / tokens,
              static_cast<unsigned long long>(servers[1]->hits()), ratios[middle], ratios[middle - std::min(middle, margin)],
              ratios[std::min(ratios.size() - 1, middle + margin)]);
  return 0;
}
