// The engine of a loaded model that sees.
#pragma once

#include "app/loaded_model.h"
#include "app/options.h"
#include "sched/compute_strand.h"
#include "sched/scheduler.h"
#include "sched/seeing_engine.h"

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>

namespace braid::app {

// What a pass over whole texts or images may take of the strand before others have their turn: so long an answer's next token may wait for
// it.
std::chrono::milliseconds most_of_step(const BatchOptions& batch);

// In front of the scheduler of a model that sees; null otherwise. All that it is given outlives it.
std::unique_ptr<sched::SeeingEngine> make_seeing(boost::asio::io_context& loop, sched::ComputeStrand& strand, const LoadedModel& loaded,
                                                 const BatchOptions& batch, sched::Scheduler& scheduler,
                                                 const sched::SchedulerOptions& options);

}  // namespace braid::app
