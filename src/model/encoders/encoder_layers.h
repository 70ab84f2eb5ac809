// Rows of some texts (or images) on their way through the layers of an encoder.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"
#include "model/encoders/encoder_adapter.h"
#include "model/encoders/encoder_attention.h"
#include "model/encoders/encoder_products.h"
#include "model/encoders/encoder_shape.h"
#include "model/encoders/encoder_weights.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace braid::model {

// By how much queries and keys turn: [rows, pairs]. No pairs: they do not.
struct RowAngles {
  std::int64_t pairs = 0;
  std::vector<float> cos, sin;
};

// norm(x) of rows of so many values; `out` may be x.
void normalise_rows(const EncoderNormWeights& norm, double epsilon, const float* x, std::int64_t rows, std::int64_t width, float* out,
                    const kernels::KernelTable& table, kernels::ThreadTeam& team);
// As the rows' adapters have the norm. `each`: norms of a row, one after the other.
void normalise_adapted(const EncoderNormWeights& norm, double epsilon, const float* x, std::int64_t rows, std::int64_t each,
                       std::int64_t width, float* out, RowAdapters of, const kernels::KernelTable& table, kernels::ThreadTeam& team);
void activate(const kernels::KernelTable& table, EncoderActivation activation, float* x, std::int64_t n);

// Multiplications of a part of the work: some milliseconds of a small machine.
inline constexpr std::int64_t kEncoderPartWork = std::int64_t{1} << 28;
// So many rows of a product make a part.
std::int64_t rows_of_part(std::int64_t multiplications_of_row);

// Its parts are a stage of a layer for some rows: what they cost bounds them, so that a long text is left as often as a short one. Each row's
// numbers depend on its own text alone. Strand only.
class EncoderLayers {
 public:
  // What outlives it.
  struct Model {
    const EncoderShape& shape;
    const std::vector<EncoderLayerWeights>& weights;
    std::span<const float> distance_bias;
    float score_scale;
    const kernels::KernelTable& table;
    kernels::ThreadTeam& team;
    std::size_t first = 0;                // of the layers: those that these rows go through
    std::optional<std::size_t> end = {};  // none: all
  };

  // `texts` cover all rows, in their order, and so do `parts`, where some layers attend within those (EncoderLayer::within_parts). `angles`:
  // one for each of shape.rotary. `tasks`: of each row, counted from 1 (EncoderShape::tasks); empty: none has one. `adapters`: of each row.
  EncoderLayers(const Model& model, std::vector<TextRows> texts, std::vector<TextRows> parts, std::vector<RowAngles> angles,
                std::vector<std::int32_t> tasks = {}, RowAdapters adapters = {});

  std::int64_t count() const { return count_; }
  // The residual stream, [count, width]: to be filled before the first advance().
  float* rows() { return x_.data(); }
  std::size_t finished() const { return layer_; }  // layers, counted from the model's first

  // Computes the next part. False: all layers are done.
  bool advance();

 private:
  // kProject: queries, keys and values of all rows; kAttend; kJoin: what attention gives into the residual stream; kFeed: the feed-forward.
  enum class Stage : std::uint8_t { kProject, kAttend, kJoin, kFeed };

  // Who sees whom.
  struct Sight {
    Sight(const Model& model, std::vector<TextRows> all);

    const std::vector<TextRows> texts;
    std::vector<std::int32_t> places;  // [rows] within their texts
    std::vector<std::size_t> owners;   // [rows]: their texts
    EncoderAttention attention;
  };

  void project(std::int64_t begin, std::int64_t end);
  void attend();
  void join(std::int64_t begin, std::int64_t end);
  void feed(std::int64_t begin, std::int64_t end);
  void feed_experts(std::int64_t begin, std::int64_t end, const float* x, float* out);
  void next_stage(Stage stage);
  void multiply(const EncoderMatrix& matrix, const float* x, std::int64_t begin, std::int64_t rows, float* out);
  // `each`: norms of a row.
  void normalise(const EncoderNormWeights& norm, const float* x, std::int64_t begin, std::int64_t rows, std::int64_t width, float* out,
                 std::int64_t each = 1);
  RowAdapters adapters_of(std::int64_t begin, std::int64_t rows) const {
    return adapters_.empty() ? adapters_ : adapters_.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(rows));
  }
  void add_branch(const EncoderNormWeights& own, const EncoderNormWeights& joined, float* branch, std::int64_t begin, std::int64_t rows);
  void rotate(float* x, std::int32_t heads, std::int64_t row) const;
  std::size_t end() const { return model_.end.value_or(model_.shape.layers.size()); }
  const EncoderLayer& layer() const { return model_.shape.layers[layer_]; }
  const EncoderLayerWeights& weights() const { return model_.weights[layer_]; }
  Sight& sight() { return layer().within_parts ? *parts_ : whole_; }

  const Model model_;
  const std::vector<RowAngles> angles_;
  const std::vector<std::int32_t> tasks_;  // [rows], or empty
  const RowAdapters adapters_;             // likewise
  Sight whole_;
  std::optional<Sight> parts_;
  const std::int64_t count_;
  EncoderProducts products_;
  std::vector<float> x_;                                                           // [rows, width]
  std::vector<float> queries_;                                                     // [rows, heads * head_dim]
  std::vector<float> mixed_;                                                       // likewise, what attention gives
  std::vector<float> input_, keys_, values_, up_, gate_, branch_, before_, held_;  // of the part at hand

  Stage stage_ = Stage::kProject;
  std::size_t layer_ = 0;
  std::int64_t next_row_ = 0;  // of the stage
  std::size_t next_text_ = 0;  // of kAttend
};

}  // namespace braid::model
