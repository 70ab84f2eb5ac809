// Queries of the model's own that look at all patches of a tile: as many vectors as these, whatever the tile's size.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"
#include "model/encoders/encoder_attention.h"
#include "model/encoders/encoder_shape.h"
#include "model/images/patch_grid.h"
#include "model/images/tower_shape.h"
#include "model/images/tower_weights.h"
#include "model/networks/network_products.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace braid::model {

// The tiles of one image, one after the other. Strand only.
class ResamplerPass {
 public:
  // All outlive it.
  ResamplerPass(const ResamplerShape& shape, const ResamplerWeights& weights, const std::vector<PatchGrid>& grids,
                const kernels::KernelTable& table, kernels::ThreadTeam& team);

  // Computes the next part, of what the tower's layers have left of all patches. False: that was the last.
  bool advance(const float* rows);
  std::vector<float> take() { return std::move(vectors_); }  // [tiles * queries, width]

 private:
  // kAsk: the queries, once; then of each tile kShow: keys and values of its patches; kAttend; kTell: vectors of what that gives.
  enum class Stage : std::uint8_t { kAsk, kShow, kAttend, kTell, kDone };

  const PatchGrid& grid() const { return grids_[tile_]; }
  void begin_tile();
  void ask(std::int64_t begin, std::int64_t end);
  void show(const float* rows, std::int64_t begin, std::int64_t end);
  void tell(std::int64_t begin, std::int64_t end);
  void add_places(float* keys, std::int64_t begin, std::int64_t end) const;
  bool finish(std::int64_t end, std::int64_t count);
  void normalise(const EncoderNormWeights& norm, float* x, std::int64_t rows) const;

  const ResamplerShape& shape_;
  const ResamplerWeights& weights_;
  const std::vector<PatchGrid>& grids_;
  const kernels::KernelTable& table_;
  kernels::ThreadTeam& team_;
  NetworkProducts products_;
  const EncoderShape heads_;  // of which attention reads the heads alone
  const EncoderLayer layer_;  // likewise, that nothing is hidden
  std::array<TextRows, 1> patches_;
  std::optional<EncoderAttention> attention_;  // of the tile at hand
  std::vector<float> places_;                  // [columns and then rows of the tile, width / 2]
  std::vector<float> queries_, mixed_;         // [queries, width]
  std::vector<float> vectors_;
  std::vector<float> seen_, keys_, values_, told_;  // of the part at hand
  Stage stage_ = Stage::kAsk;
  std::size_t tile_ = 0;
  std::int64_t next_ = 0;  // query, or patch in the tower's order
};

}  // namespace braid::model
