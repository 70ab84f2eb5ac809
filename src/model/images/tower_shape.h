// The part of a model that sees, as data: a tower of encoder layers over the patches of an image, and a connector that makes vectors of the
// language model's width of what the tower gives. What a family makes of its configuration; nothing else knows families.
#pragma once

#include "model/encoders/encoder_shape.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace braid::model {

inline constexpr std::int64_t kPlanes = 3;  // of an image: red, green, blue

// What a patch's place in its image adds to it, from a table of vectors.
enum class PatchPlaces : std::uint8_t {
  kNone,
  kEach,      // tiles have just the size that the table is for
  kSmoothed,  // the table is a square, resized to the tile: bilinearly, with antialiasing
  kBlended,   // likewise, its corners being those of the tile: each patch between four vectors
  kCubic,     // likewise, its edges being those of the tile: each patch among sixteen vectors
  kNearest,   // likewise, each patch having the vector of the cell of the square that its corner lies in
  kCrossed,   // the table has a vector for each column, then one for each row, so many each: their sum
};

// The turn of queries and keys by a patch's place: the first half of a head's pairs by its row, the second by its column.
struct PatchRotation {
  double base = 10'000.0;
  bool alternating = false;  // columns have the frequencies between those of the rows, not the same ones
};

// How the tiles' vectors become those of the image.
enum class TileOrder : std::uint8_t {
  kAsTheyCome,
  kMosaic,         // the overview's, then the other tiles' as one picture, cut to what the image covers, a newline vector behind each row
  kReducedMosaic,  // likewise, the picture made smaller where it has more than most_tiles tiles' vectors
};

// From a square of patches to a vector.
struct ConnectorShape {
  std::int32_t side = 1;    // patches of the square's side
  bool averages = false;    // otherwise they lie one after the other, row by row
  float scale = 1.0F;       // of what was joined
  std::string less, times;  // tensors [width], or empty: what is taken from that, and by what it is multiplied then
  EncoderNorm before;       // of each patch, where they are not averaged
  EncoderNorm after;        // of what was joined
  double epsilon = 1e-5;    // of both
  std::vector<EncoderDense> dense;
  bool adds_mean = false;  // of the patches, in the end
};

// In place of a connector: queries that attend to all patches of a tile, to whose keys waves of their columns and rows are added. Each becomes
// a vector (a perceiver's resampler).
struct ResamplerShape {
  std::string queries;     // tensor [count, width]
  std::int32_t count = 0;  // of a tile's vectors
  std::int32_t heads = 0;
  std::int64_t width = 0;   // of the vectors
  std::int64_t inputs = 0;  // of patches
  double epsilon = 1e-6;    // of all its norms
  EncoderLinear joined;     // patches to the width; none: they have it
  EncoderNorm query_norm, patch_norm;
  EncoderLinear query, key, value, out;
  EncoderNorm after;         // of what attention gives
  EncoderLinear projection;  // of that
};

// Between two layers: squares of patches become one each.
struct TowerReduction {
  std::int32_t layers = 0;  // before it; the last of them, which is shown the squares as parts, has no feed-forward
  ConnectorShape squares;   // to the tower's width
};

// The vectors of another connector, of what the tower has after so many layers, are added to the language model's first layers.
struct DeepConnector {
  std::int32_t layers = 0;
  ConnectorShape connector;
};

// A tensor that is not stored as it is computed with.
struct TensorForm {
  enum class Kind : std::uint8_t {
    kTransposed,   //
    kSum,          // the tensor `by` is added: of a second frame
    kScaledRows,   // each row counts by its value of the tensor `by`
    kPixelsLast,   // the columns of a patch are [pixels, 3], not [3, pixels]
    kSquaresLast,  // the columns are [width, `count` patches], not [patches, width]
    kColumns,      // it has `count` columns, and as many rows as come of that
    kHeadOrder,    // of each head within the first `count` rows: rows in the order `order`
  };
  std::string name;
  Kind kind = Kind::kTransposed;
  std::string by = {};
  std::int64_t count = 1;
  std::vector<std::int32_t> order = {};
};

struct TowerShape {
  // Layers, their width, the norm of patches before them (embedding_norm) and the one behind them (final_norm). `positions` is the table of
  // places, [first_position + context, width], the first row that of `first`, where there is one.
  EncoderShape encoder;
  std::int32_t patch = 0;    // pixels of its side
  float pixel_scale = 1.0F;  // a pixel is read as scale * value + shift
  float pixel_shift = 0.0F;
  EncoderLinear patches;  // of the planes of a patch, [3, patch, patch]
  std::string first;      // tensor [width]: a vector in front of a tile's patches; or empty. It is not handed on
  PatchPlaces places = PatchPlaces::kNone;
  std::optional<PatchRotation> rotation;
  std::int32_t window = 0;  // squares of the connector's a side: what layers with within_parts see
  std::optional<TowerReduction> reduction;
  ConnectorShape connector;
  std::optional<ResamplerShape> resampler;
  std::vector<DeepConnector> deep;
  TileOrder order = TileOrder::kAsTheyCome;
  std::int32_t most_tiles = 0;
  std::string newline;          // tensor [width of the vectors]
  bool grid_positions = false;  // rotary positions of the language model follow rows and columns of the vectors
  bool both_ways = false;       // its tokens see all of their image
  std::vector<TensorForm> forms;

  // Patches of the side of what becomes one vector.
  std::int32_t unit() const { return connector.side * (reduction ? reduction->squares.side : 1); }
  std::int64_t vector_width() const {
    if (resampler) return resampler->width;
    return connector.dense.empty() ? encoder.width : connector.dense.back().linear.outputs;
  }
  // Of a tile with so many patches.
  std::int64_t vectors_of(std::int64_t count) const { return resampler ? resampler->count : count / (unit() * unit()); }
};

}  // namespace braid::model
