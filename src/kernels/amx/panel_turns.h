// The panels of a product by tiles, in the order they go by: those of one matrix, or in turns those of gate and of up, of whose sums the
// second one's are settled as SwiGLU of both (MatmulArgs::up).
#pragma once

#include "kernels/kernel_table.h"

#include <cstddef>
#include <cstdint>

namespace braid::kernels::amx {

class PanelTurns {
 public:
  PanelTurns(const MatmulArgs& args, std::int64_t panel_bytes)
      : args_(args), panel_bytes_(panel_bytes), shift_(args.up != nullptr ? 1 : 0) {}

  bool fused() const { return shift_ == 1; }
  std::int64_t count() const { return args_.weights->panels() << shift_; }
  PanelRange range(const PanelRange& panels) const { return {panels.begin << shift_, panels.end << shift_}; }

  const std::byte* data(std::int64_t turn) const {
    const PackedMatrix& matrix = is_up(turn) ? *args_.up : *args_.weights;
    return matrix.data + (turn >> shift_) * panel_bytes_;
  }
  bool is_up(std::int64_t turn) const { return (turn & shift_) != 0; }
  // Whether results are written, rather than kept for the next turn.
  bool writes(std::int64_t turn) const { return (turn & shift_) == shift_; }
  std::int64_t first_output(std::int64_t turn) const { return (turn >> shift_) * kPanel; }

 private:
  const MatmulArgs& args_;
  const std::int64_t panel_bytes_;
  const int shift_;  // of a panel's number
};

}  // namespace braid::kernels::amx
