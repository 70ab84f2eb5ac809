// An image on its way through a tower.
#pragma once

#include "model/encoders/encoder_layers.h"
#include "model/images/image_tower.h"
#include "model/images/patch_grid.h"
#include "model/images/resampler.h"
#include "model/networks/network_products.h"
#include "step/image_encoder.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace braid::model {

class TowerPass final : public step::ImagePass {
 public:
  // Of pixels that the tower has checked. It outlives the pass.
  TowerPass(const ImageTower& tower, SharedPixels pixels);

  bool advance() override;
  std::vector<float> take() override;

 private:
  enum class Stage : std::uint8_t { kEmbed, kLayers, kReduce, kUpperLayers, kConnect, kDone };

  // A square of patches that becomes a vector.
  struct Square {
    std::size_t tile = 0;
    std::int32_t row = 0;  // of its first patch
    std::int32_t column = 0;
  };

  // Rows on their way through some of the layers, and what becomes of them.
  struct Floor {
    Floor(EncoderLayers::Model model, const TowerShape& shape, std::vector<PatchGrid> all, std::int32_t side);

    const std::vector<PatchGrid> grids;
    std::vector<Square> squares;  // of `side` patches a side
    EncoderLayers layers;
  };

  Floor& top() { return upper_ ? *upper_ : ground_; }
  void embed_patches(std::int64_t begin, std::int64_t end);
  void add_places();
  std::vector<float> places_of(const PatchGrid& grid) const;
  bool tap_layers();
  bool connect_part(Floor& from, const ConnectorShape& shape, const ConnectorWeights& weights, std::vector<float>& out);
  void connect(Floor& from, const ConnectorShape& shape, const ConnectorWeights& weights, std::int64_t begin, std::int64_t end,
               std::vector<float>& out);
  void join(const Floor& from, const ConnectorShape& shape, const Square& square, const float* rows, float* out) const;
  void average(const Floor& from, std::int32_t side, const Square& square, const float* rows, float* out) const;
  void norm_rows();
  std::vector<float> vectors_of(std::vector<float> connected) const;

  const ImageTower& tower_;
  const SharedPixels pixels_;
  NetworkProducts products_;
  Floor ground_;
  std::optional<Floor> upper_;  // behind a reduction
  std::optional<ResamplerPass> resampler_;
  std::vector<float> reduced_;            // [squares, width], of ground_
  std::vector<float> connected_;          // [squares, width of a vector]
  std::vector<std::vector<float>> deep_;  // likewise, of each deep connector
  std::vector<float> input_, part_;       // of the part at hand
  Stage stage_ = Stage::kEmbed;
  std::size_t next_tile_ = 0;
  std::int64_t next_ = 0;  // patch of the tile, or square
  std::size_t tapped_ = 0;
};

}  // namespace braid::model
