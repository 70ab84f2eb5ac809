#include "model/drafting/mtp_drafter.h"

#include "model/norm.h"

#include <algorithm>
#include <utility>

namespace braid::model {

HeadModel MtpDrafter::head_of(const ModelShape& model, const Weights& weights) {
  HeadModel head{.shape = model, .weights = {}, .heard_width = model.embedding, .read_layers = {}, .tokens = {}};
  head.shape.layers = {model.prediction->layer};
  head.shape.output.norm = model.prediction->norm;
  head.shape.input.norm = {};
  head.shape.input.positions.clear();
  head.shape.kv_limit = 0;
  head.shape.prediction.reset();
  head.weights.embedding = weights.embedding;
  head.weights.output = weights.output;
  head.weights.output_bias = weights.output_bias;
  head.weights.output_norm = weights.prediction.norm;
  head.weights.rope_divisors = weights.rope_divisors;
  head.weights.layers = {weights.prediction.layer};
  head.weights.prediction = weights.prediction;
  return head;
}

Result<std::unique_ptr<MtpDrafter>> MtpDrafter::create(const ModelShape& model, const Weights& weights, const HeadRoom& room) {
  HeadModel head = head_of(model, weights);
  Result<Parts> parts = make_parts(head, room);
  if (!parts) return parts.error();
  return std::unique_ptr<MtpDrafter>(new MtpDrafter(model, std::move(head), room, std::move(*parts)));
}

MtpDrafter::MtpDrafter(const ModelShape& model, HeadModel head, const HeadRoom& room, Parts parts)
    : HeadDrafter(std::move(head), room, std::move(parts)), prediction_(*model.prediction) {
  joined_.reserve(static_cast<std::size_t>(space_.shape.rows) * 2 * static_cast<std::size_t>(head_.shape.embedding));
}

void MtpDrafter::make_rows(std::span<const Input> inputs, bool /*are_heard*/, std::vector<float>& rows) {
  const auto width = static_cast<std::size_t>(head_.shape.embedding);
  const PredictionWeights& own = head_.weights.prediction;
  joined_.clear();
  for (const Input& input : inputs) {
    joined_.resize(joined_.size() + 2 * width);
    float* const embedded = joined_.data() + joined_.size() - 2 * width;
    table_.unpack_row(head_.weights.embedding, input.token, embedded);
    for (std::size_t i = 0; i < width; ++i) embedded[i] *= head_.shape.input.scale;
    normalise(table_, prediction_.token_norm, own.token_norm, embedded, embedded);
    normalise(table_, prediction_.hidden_norm, own.hidden_norm, input.hidden, embedded + width);
  }
  const auto count = static_cast<std::int64_t>(inputs.size());
  const Product join{&own.join.matrix, space_.residual};
  products_.run({&join, 1}, count, space_, [&](std::int64_t row, float*) { return joined_.data() + row * 2 * head_.shape.embedding; });
  products_.add_bias(own.join, space_.residual, count);
  for (std::int64_t row = 0; row < count; ++row) rows.insert(rows.end(), space_.residual[row], space_.residual[row] + width);
}

}  // namespace braid::model
