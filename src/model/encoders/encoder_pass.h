// A batch of texts on its way through an encoder. Its parts are a stage of a layer for some rows: what they cost bounds them, so that a
// long text is left as often as a short one. Each row's numbers depend on its own text alone.
#pragma once

#include "model/encoders/encoder_attention.h"
#include "model/encoders/text_encoder.h"
#include "model/networks/network_products.h"
#include "step/encoder.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace braid::model {

class TextEncoderPass final : public step::EncoderPass {
 public:
  // The encoder outlives it.
  TextEncoderPass(const TextEncoder& encoder, std::vector<step::EncoderText> texts);

  bool advance() override;
  std::vector<float> take(std::size_t text) override;

 private:
  // kProject: queries, keys and values of all rows; kAttend; kJoin: what attention gives into the residual stream; kFeed: the feed-forward.
  enum class Stage : std::uint8_t { kEmbed, kProject, kAttend, kJoin, kFeed, kPool, kDone };

  void embed();
  void project(std::int64_t begin, std::int64_t end);
  void attend();
  void join(std::int64_t begin, std::int64_t end);
  void feed(std::int64_t begin, std::int64_t end);
  void feed_experts(std::int64_t begin, std::int64_t end, const float* x, float* out);
  void pool();
  void next_stage(Stage stage);
  std::int64_t rows_for(std::int64_t multiplications) const;  // of a row
  void normalise(const EncoderNormWeights& norm, const float* x, std::int64_t rows, std::int64_t width, float* out);
  void add_branch(const EncoderNormWeights& own, const EncoderNormWeights& joined, float* branch, std::int64_t begin, std::int64_t rows);
  void rotate(float* x, std::int32_t heads, std::int32_t place, std::int32_t rotary, float* angles) const;
  void activate(EncoderActivation activation, float* x, std::int64_t n) const;
  std::vector<float> pooled(const step::EncoderText& text, const TextRows& rows) const;
  std::vector<float> scores_of(std::vector<float> vector);
  const EncoderLayer& layer() const { return encoder_.shape().layers[layer_]; }
  const EncoderLayerWeights& weights() const { return encoder_.weights().layers[layer_]; }

  const TextEncoder& encoder_;
  const std::vector<step::EncoderText> texts_;
  const std::vector<TextRows> rows_;  // of each text
  const std::int64_t count_;          // rows of all
  std::vector<std::int32_t> places_;  // [rows] within their texts
  std::vector<std::size_t> owners_;   // [rows]: their texts
  NetworkProducts products_;
  EncoderAttention attention_;
  std::vector<float> x_;                                           // [rows, width], the residual stream
  std::vector<float> queries_;                                     // [rows, heads * head_dim]
  std::vector<float> mixed_;                                       // likewise, what attention gives
  std::vector<float> input_, keys_, values_, up_, gate_, branch_;  // of the part at hand
  std::vector<std::vector<float>> results_;

  Stage stage_ = Stage::kEmbed;
  std::size_t layer_ = 0;
  std::int64_t next_row_ = 0;  // of the stage
  std::size_t next_text_ = 0;  // of kAttend
};

}  // namespace braid::model
