// Which part of a model a rank computes.
#pragma once

#include "model/share.h"
#include "model/stage.h"

#include <cstdint>

namespace braid::ranks {

// Ranks are counted stage by stage. Those of a stage divide each of its products.
struct Seat {
  std::int32_t rank = 0;
  std::int32_t ranks = 1;
  model::Exchange* exchange = nullptr;  // with the ranks of its stage; outlives the rank
  model::Relay* relay = nullptr;        // with the same one of other stages; null: there is one stage
  std::int32_t stages = 1;              // divides `ranks`

  std::int32_t in_stage() const { return ranks / stages; }
  model::Share share() const { return {.rank = rank % in_stage(), .ranks = in_stage()}; }
  model::Stage stage() const { return {.index = rank / in_stage(), .count = stages}; }

  // The one that says what the last stage has computed.
  static std::int32_t speaker(std::int32_t ranks, std::int32_t stages) { return ranks - ranks / stages; }
  bool speaks() const { return rank == speaker(ranks, stages); }
};

}  // namespace braid::ranks
