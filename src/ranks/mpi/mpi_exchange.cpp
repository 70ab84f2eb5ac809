#include "ranks/mpi/mpi_exchange.h"

#include <limits>
#include <stdexcept>
#include <thread>

namespace braid::ranks {

void MpiExchange::gather(std::span<const float> own, std::span<const std::size_t> counts, std::span<float> all) {
  if (all.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) throw std::length_error("more values than MPI counts");
  counts_.clear();
  places_.clear();
  int place = 0;
  for (const std::size_t count : counts) {
    counts_.push_back(static_cast<int>(count));
    places_.push_back(place);
    place += static_cast<int>(count);
  }
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Iallgatherv(own.data(), static_cast<int>(own.size()), MPI_FLOAT, all.data(), counts_.data(), places_.data(), MPI_FLOAT,
                      MPI_COMM_WORLD, &request) != MPI_SUCCESS)
    throw std::runtime_error("MPI refuses to gather what ranks have computed");
  // MPI makes progress only while it is asked, so this is the work of this moment and no waiting: ranks compute equal shares.
  const auto end = std::chrono::steady_clock::now() + limit_;
  for (int done = 0; done == 0;) {
    if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) throw std::runtime_error("a rank of the model is gone");
    if (done != 0) break;
    if (std::chrono::steady_clock::now() > end) throw std::runtime_error("a rank of the model does not answer");
    std::this_thread::yield();  // to the others, where they share this processor
  }
}

}  // namespace braid::ranks
