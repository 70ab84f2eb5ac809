// Ranks as processes of an MPI job (MPI 3.1).
#pragma once

#include "model/share.h"

#include <chrono>
#include <cstddef>
#include <mpi.h>
#include <span>
#include <vector>

namespace braid::ranks {

// MPI is initialised. One thread.
class MpiExchange final : public model::Exchange {
 public:
  // A gathering that takes longer than `limit` ends with an exception: another rank hangs.
  explicit MpiExchange(std::chrono::milliseconds limit) : limit_(limit) {}

  void gather(std::span<const float> own, std::span<const std::size_t> counts, std::span<float> all) override;

 private:
  const std::chrono::milliseconds limit_;
  std::vector<int> counts_, places_;
};

}  // namespace braid::ranks
