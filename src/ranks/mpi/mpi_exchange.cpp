#include "ranks/mpi/mpi_exchange.h"

#include <limits>
#include <stdexcept>
#include <thread>

namespace braid::ranks {
namespace {

int counted(std::size_t values) {
  if (values > static_cast<std::size_t>(std::numeric_limits<int>::max())) throw std::length_error("more values than MPI counts");
  return static_cast<int>(values);
}

// MPI makes progress only while it is asked, so this is the work of this moment and no waiting: ranks compute equal shares.
void complete(MPI_Request& request, std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  for (int done = 0; done == 0;) {
    if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) throw std::runtime_error("a rank of the model is gone");
    if (done != 0) break;
    if (std::chrono::steady_clock::now() > end) throw std::runtime_error("a rank of the model does not answer");
    std::this_thread::yield();  // to the others, where they share this processor
  }
}

}  // namespace

void MpiExchange::gather(std::span<const float> own, std::span<const std::size_t> counts, std::span<float> all) {
  (void)counted(all.size());
  counts_.clear();
  places_.clear();
  int place = 0;
  for (const std::size_t count : counts) {
    counts_.push_back(static_cast<int>(count));
    places_.push_back(place);
    place += static_cast<int>(count);
  }
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Iallgatherv(own.data(), counted(own.size()), MPI_FLOAT, all.data(), counts_.data(), places_.data(), MPI_FLOAT, ranks_,
                      &request) != MPI_SUCCESS)
    throw std::runtime_error("MPI refuses to gather what ranks have computed");
  complete(request, limit_);
}

void MpiRelay::pass_on(std::span<const float> rows) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Isend(rows.data(), counted(rows.size()), MPI_FLOAT, next_, 0, MPI_COMM_WORLD, &request) != MPI_SUCCESS)
    throw std::runtime_error("MPI refuses to hand rows to the next stage");
  complete(request, limit_);
}

void MpiRelay::take(std::span<float> rows) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Irecv(rows.data(), counted(rows.size()), MPI_FLOAT, before_, 0, MPI_COMM_WORLD, &request) != MPI_SUCCESS)
    throw std::runtime_error("MPI refuses to take rows of the stage before");
  complete(request, limit_);
}

}  // namespace braid::ranks
