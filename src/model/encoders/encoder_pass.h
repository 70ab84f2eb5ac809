// A batch of texts on its way through an encoder, a part of a layer at a time. Each row's numbers depend on its own text alone.
#pragma once

#include "model/encoders/encoder_layers.h"
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
  enum class Stage : std::uint8_t { kEmbed, kLayers, kNormalise, kPool, kDone };

  void embed();
  void embed_token(std::size_t text, std::int32_t place, float* to) const;
  void look_up(const EncoderTable& table, std::int64_t row, std::int32_t task, float* to) const;
  bool pool_next();
  void normalise_all();
  void normalise(const EncoderNormWeights& norm, const float* x, std::int64_t rows, std::int64_t width, float* out);
  std::vector<float> pooled(const step::EncoderText& text, const TextRows& rows);
  std::vector<float> scores_of(std::vector<float> vector);
  std::vector<float> through_dense(std::vector<float> vectors);
  std::int64_t rows_of_part() const;

  const TextEncoder& encoder_;
  const std::vector<step::EncoderText> texts_;
  const std::vector<TextRows> rows_;  // of each text
  NetworkProducts products_;
  EncoderLayers layers_;
  std::vector<std::vector<float>> results_;
  std::size_t pooled_ = 0;     // texts that are
  std::int64_t next_row_ = 0;  // of the next one, where each token's vector is wanted
  Stage stage_ = Stage::kEmbed;
};

}  // namespace braid::model
