// A batch of texts on its way through an encoder, a part of a layer at a time. Each row's numbers depend on its own text alone.
#pragma once

#include "model/encoders/encoder_adapter.h"
#include "model/encoders/encoder_layers.h"
#include "model/encoders/encoder_products.h"
#include "model/encoders/text_encoder.h"
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
  enum class Stage : std::uint8_t { kEmbed, kLayers, kNormalise, kPool, kDone };

  void embed();
  void embed_token(std::size_t text, std::int32_t place, float* to) const;
  void look_up(const std::vector<float>& rows, const AdaptedTable EncoderAdapter::*adapted, std::size_t text, std::int64_t row,
               float* to) const;
  void add_rows(const TaskRows& added, float scale, std::int64_t row, float* to) const;
  void add_task(const EncoderTable& table, std::size_t text, std::int64_t row, float* to) const;
  bool pool_next();
  void normalise_all();
  void normalise(const EncoderNormWeights& norm, const float* x, std::int64_t rows, std::int64_t width, float* out, RowAdapters of);
  const EncoderAdapterSet* adapters_of(std::size_t text) const { return static_cast<const EncoderAdapterSet*>(texts_[text].adapter.get()); }
  const EncoderHead& head_shape_of(std::size_t text) const;
  const EncoderHeadWeights& head_of(std::size_t text) const;
  std::vector<float> pooled(std::size_t text);
  std::vector<float> scores_of(std::size_t text, std::vector<float> vector);
  std::vector<float> through_dense(std::vector<float> vectors);
  std::int64_t rows_of_part() const;

  const TextEncoder& encoder_;
  const std::vector<step::EncoderText> texts_;
  const std::vector<TextRows> rows_;                      // of each text
  const std::vector<const EncoderAdapterSet*> adapters_;  // of each row; empty: no text uses any
  EncoderProducts products_;
  EncoderLayers layers_;
  std::vector<std::vector<float>> results_;
  std::size_t pooled_ = 0;     // texts that are
  std::int64_t next_row_ = 0;  // of the next one, where each token's vector is wanted
  Stage stage_ = Stage::kEmbed;
};

}  // namespace braid::model
