// The products of an encoder, with what adapters make of them for the rows that use some.
#pragma once

#include "model/encoders/encoder_adapter.h"
#include "model/networks/network_products.h"

#include <cstdint>
#include <vector>

namespace braid::model {

// Strand only: it uses the team.
class EncoderProducts {
 public:
  // Both outlive it.
  EncoderProducts(const kernels::KernelTable& table, kernels::ThreadTeam& team) : products_(table, team) {}

  // out[rows, outputs] = x[rows, inputs] * matrix + bias. The base's product is computed for all rows at once, and what is added to it for
  // those of one adapter side by side; a row's numbers depend on what it uses alone.
  void multiply(const LayerMatrix& matrix, const float* x, std::int64_t rows, float* out, RowAdapters of = {});
  // out += up (down x)
  void add(const TaskMatrices& low_rank, float scale, const float* x, std::int64_t rows, float* out);

 private:
  void adapt(const LayerMatrix& matrix, const EncoderAdapterSet* set, const float* x, std::int64_t rows, float* out);

  NetworkProducts products_;
  std::vector<float> low_, added_;
};

}  // namespace braid::model
