// The workshop of a server: a thread of little weight with a team of its own for packing.
#pragma once

#include "app/options.h"
#include "app/serving/workshop.h"
#include "app/weight_shelf.h"
#include "files/gguf.h"
#include "kernels/thread_team.h"
#include "sched/compute_strand.h"

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <optional>

namespace braid::app {

// Loop only, but for its thread, on which one thing is done after the other. While something is done, the io_context has work.
class LoadingThread final : public Workshop {
 public:
  // The models compute on `strand` with `team`. All outlive it. `shelf` has what is loaded already, and is its thread's from now on.
  LoadingThread(boost::asio::io_context& loop, sched::ComputeStrand& strand, kernels::ThreadTeam& team, const ServeOptions& options,
                WeightShelf shelf);
  ~LoadingThread() override;

  boost::asio::awaitable<Result<ModelNeeds>> look(const ServedModelOptions& model) override;
  boost::asio::awaitable<Result<std::uint64_t>> memory_left(std::uint64_t untouched) override;
  boost::asio::awaitable<Result<std::unique_ptr<ServedEngine>>> make(const ServedModelOptions& model, PoolBytes pool,
                                                                     OnProgress on_progress) override;
  boost::asio::awaitable<void> discard(std::shared_ptr<void> remains) override;
  void cancel() override { is_cancelled_ = true; }

 private:
  struct Looked;

  Result<ModelNeeds> look_now(const ServedModelOptions& model);
  Result<LoadedModel> load_now(const ServedModelOptions& model, const PoolBytes& pool, const OnProgress& on_progress);
  files::Progress tell(OnProgress on_progress);

  boost::asio::io_context& loop_;
  sched::ComputeStrand& strand_;
  kernels::ThreadTeam& team_;
  const ServeOptions& options_;
  std::atomic<bool> is_cancelled_{false};
  // The thread's.
  WeightShelf shelf_;
  std::optional<files::GgufFile> file_;  // of the language model that was looked at last
  boost::asio::thread_pool thread_{1};   // last: it ends before what it uses
};

}  // namespace braid::app
