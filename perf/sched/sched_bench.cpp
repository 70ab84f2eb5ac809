// What the scheduler costs the loop, without a model: the way over to the compute strand and back, planning, delivery.
#include "sched/batch_planner.h"
#include "sched/roster.h"
#include "sched/scheduler.h"
#include "sched/strand_lane.h"
#include "sched/ticket.h"
#include "sched/token_stream.h"

#include <benchmark/benchmark.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

namespace {

using namespace braid;         // NOLINT: a program, not a header
using namespace braid::sched;  // NOLINT

namespace asio = boost::asio;

// Gives every row a token at once, and ends a sequence at its max_tokens.
class InstantModel final : public step::StepExecutor {
 public:
  explicit InstantModel(std::size_t slots) : left_(slots, 0) {}

  void execute(const step::StepPlan& plan, step::StepResult& result) override {
    for (const step::SlotStart& start : plan.starts) left_[start.slot] = start.stop.max_tokens - start.generated;
    for (const step::StepRow& row : plan.rows) {
      step::RowResult& out = result.rows.emplace_back();
      out.slot = row.slot;
      out.ran = true;
      out.sampled = row.samples();
      if (row.samples()) out.finished = --left_[row.slot] == 0;
      out.reason = FinishReason::kLength;
    }
  }

 private:
  std::vector<std::int32_t> left_;
};

SchedulerOptions options_for(std::int32_t sequences, std::int32_t context) {
  SchedulerOptions options;
  options.max_batch = sequences;
  options.max_batch_tokens = 2 * sequences + 4096;
  options.context_length = context;
  options.blocks = sequences * (context / options.block_tokens + 1) * 2;
  return options;
}

// Prompts of different clients differ from their first token on: equal ones would be computed by one of them.
GenerationRequest request_of(std::int32_t client, std::int32_t prompt, std::int32_t max_tokens) {
  GenerationRequest request;
  request.prompt.assign(static_cast<std::size_t>(prompt), 1);
  request.prompt.front() = client;
  request.stop.max_tokens = max_tokens;
  return request;
}

// One step over and back; with depth 2 the strand always has the next one.
void strand_round_trip(benchmark::State& state) {
  asio::io_context loop;
  auto work = asio::make_work_guard(loop);  // or the loop stops for good whenever no step is out
  InstantModel model(1);
  ComputeStrand the_strand(loop);
  StrandLane strand(
      the_strand, model, [] {}, [] {});
  const auto post = [&] {
    strand.next_plan();
    strand.post();
  };
  for (std::int64_t i = 0; i < state.range(0); ++i) post();
  for ([[maybe_unused]] auto _ : state) {
    while (strand.returned() == nullptr) loop.run_one();
    strand.pop();
    post();
  }
  work.reset();
  loop.run();
}
BENCHMARK(strand_round_trip)->Arg(1)->Arg(2)->UseRealTime();

class NobodyListens final : public TicketListener {
  void on_abandoned(Sequence&, bool) noexcept override {}
  void on_drained(Sequence&) noexcept override {}
};

// A step of decode rows, each with a context of 1,024 tokens: 64 blocks a row.
void plan_decodes(benchmark::State& state) {
  constexpr std::int32_t kContext = 1024;
  const auto rows = static_cast<std::int32_t>(state.range(0));
  SchedulerOptions options = options_for(rows, 4 * kContext);
  options.max_batch_tokens = rows * kContext;
  Roster roster(options);
  const BatchPlanner planner(options);
  const PrefillPace pace(1e9);
  NobodyListens nobody;
  std::vector<std::unique_ptr<SequenceTicket>> tickets;
  for (std::int32_t i = 0; i < rows; ++i) {
    Sequence& sequence = roster.enqueue(request_of(i, kContext, 1 << 20), 1 << 20, {});
    tickets.push_back(std::make_unique<SequenceTicket>(nobody, 64));
    tickets.back()->attach(sequence);
  }
  step::StepPlan plan;
  std::vector<Sequence*> full;
  PlannedStep step;
  step.plan = &plan;
  roster.admit(0.0);
  for (auto& [rank, sequence] : roster.batch()) {
    sequence.phase = SequencePhase::kDecode;
    sequence.progress.reuse(kContext);
  }
  const auto pass = [&] {
    plan.clear();
    step.members.clear();
    step.shape = {};
    roster.make_room();
    planner.add_decodes(roster.batch(), step, DraftPace(0), full);
    roster.admit(0.0);
    planner.add_prefills(roster.batch(), step, pace);
    for (auto& [rank, sequence] : roster.batch()) {  // as if the step had never been
      sequence.progress.came_back({1, 1, 1, 1});
      sequence.progress.came_back({1, 1, 0, 0}, kContext, kContext);
      sequence.progress.leave_step();
    }
  };
  pass();  // the first one takes the blocks that all later ones find, and the plan's memory
  for ([[maybe_unused]] auto _ : state) pass();
  state.SetItemsProcessed(state.iterations() * rows);
}
BENCHMARK(plan_decodes)->Arg(1)->Arg(256)->Arg(4096)->Arg(10'000);

// Admission where the first in line lacks more than so many who pause could give up, each with a context of 1,024 tokens, recurrent states and
// half of it shared by all.
void admit_beside_holders(benchmark::State& state) {
  constexpr std::int32_t kContext = 1024;
  const auto holders = static_cast<std::int32_t>(state.range(0));
  SchedulerOptions options = options_for(holders, 2 * kContext);
  options.state_blocks = 3;
  Roster roster(options);
  NobodyListens nobody;
  std::vector<std::unique_ptr<SequenceTicket>> tickets;
  const auto enqueue = [&](std::int32_t client, std::int32_t prompt) -> Sequence& {
    Sequence& sequence = roster.enqueue(request_of(client, prompt, 8), 8, {});
    tickets.push_back(std::make_unique<SequenceTicket>(nobody, 64));
    tickets.back()->attach(sequence);
    return sequence;
  };
  std::vector<Sequence*> pausing;
  for (std::int32_t i = 0; i < holders; ++i) pausing.push_back(&enqueue(i, kContext));
  roster.admit(0.0);
  for (Sequence* sequence : pausing) {
    const auto own = sequence->blocks.places() / 2;
    const auto shared = pausing.front()->blocks[0].first(own);
    if (sequence != pausing.front())
      for (std::int32_t i = 0; i < own; ++i) sequence->blocks[0].replace(i, shared[static_cast<std::size_t>(i)]);
    sequence->phase = SequencePhase::kDecode;
    roster.stall(*sequence);
  }
  enqueue(holders, options.blocks * options.block_tokens);
  for ([[maybe_unused]] auto _ : state) roster.admit(0.0);
}
BENCHMARK(admit_beside_holders)->Arg(256)->Arg(4096)->Arg(10'000)->Unit(benchmark::kMicrosecond);

asio::awaitable<void> read_all(TokenStream& stream) {
  for (;;) {
    const std::optional<TokenEvent> event = stream.try_next();
    if (!event) co_await stream.arrived().wait();
    if (event && std::holds_alternative<Finish>(*event)) co_return;
  }
}

// A token into each stream and out again in its reader's coroutine.
void deliver_token(benchmark::State& state) {
  asio::io_context loop;
  const auto wakes = std::make_shared<WakeList>(loop);
  std::vector<std::unique_ptr<TokenStream>> streams;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    streams.push_back(std::make_unique<TokenStream>(64));
    asio::co_spawn(loop, read_all(*streams.back()), asio::detached);
  }
  loop.poll();
  for ([[maybe_unused]] auto _ : state) {
    for (const auto& stream : streams) {
      stream->push({});
      stream->deliver(*wakes);
    }
    loop.poll();
  }
  for (const auto& stream : streams) {
    stream->finish({});
    stream->deliver(*wakes);
  }
  loop.run();
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(deliver_token)->Arg(256)->Arg(10'000);

asio::awaitable<void> read_ticket(Ticket ticket) {
  for (;;) {
    const std::optional<TokenEvent> event = co_await ticket->next();
    if (event && std::holds_alternative<Finish>(*event)) co_return;
  }
}

// Everything between submit() and the reader, per generated token: CPU time is the loop's.
void run_scheduler(benchmark::State& state, const SchedulerOptions& options) {
  constexpr std::int32_t kTokens = 128;
  const auto clients = static_cast<std::int32_t>(state.range(0));
  for ([[maybe_unused]] auto _ : state) {
    asio::io_context loop;
    InstantModel model(static_cast<std::size_t>(clients));
    Scheduler scheduler(loop, model, options);
    for (std::int32_t i = 0; i < clients; ++i) {
      Ticket ticket = *scheduler.submit(request_of(i, 40, kTokens));
      asio::co_spawn(loop, read_ticket(std::move(ticket)), asio::detached);
    }
    scheduler.begin_drain();
    loop.run();
  }
  state.SetItemsProcessed(state.iterations() * clients * kTokens);
}
void whole_scheduler(benchmark::State& state) { run_scheduler(state, options_for(static_cast<std::int32_t>(state.range(0)), 256)); }
BENCHMARK(whole_scheduler)->Arg(256)->Arg(10'000)->Unit(benchmark::kMillisecond);

// All of them come by checkpoints, of which a third finds room.
void whole_scheduler_with_states(benchmark::State& state) {
  const auto clients = static_cast<std::int32_t>(state.range(0));
  SchedulerOptions options = options_for(clients, 256);
  options.state_blocks = 2;
  options.state_interval = 64;
  options.most_state_blocks = options.state_blocks * clients;
  run_scheduler(state, options);
}
BENCHMARK(whole_scheduler_with_states)->Arg(256)->Arg(10'000)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
