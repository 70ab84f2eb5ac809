// Ranks as processes of an MPI job (MPI 3.1).
#pragma once

#include "model/share.h"
#include "model/stage.h"

#include <chrono>
#include <cstddef>
#include <mpi.h>
#include <span>
#include <vector>

namespace braid::ranks {

// MPI is initialised. One thread. What takes longer than `limit` ends with an exception: another rank hangs.

// Between the ranks of a communicator.
class MpiExchange final : public model::Exchange {
 public:
  MpiExchange(MPI_Comm ranks, std::chrono::milliseconds limit) : ranks_(ranks), limit_(limit) {}

  void gather(std::span<const float> own, std::span<const std::size_t> counts, std::span<float> all) override;

 private:
  const MPI_Comm ranks_;
  const std::chrono::milliseconds limit_;
  std::vector<int> counts_, places_;
};

// From one rank of the job to another.
class MpiRelay final : public model::Relay {
 public:
  MpiRelay(int before, int next, std::chrono::milliseconds limit) : before_(before), next_(next), limit_(limit) {}

  void pass_on(std::span<const float> rows) override;
  void take(std::span<float> rows) override;

 private:
  const int before_, next_;
  const std::chrono::milliseconds limit_;
};

}  // namespace braid::ranks
