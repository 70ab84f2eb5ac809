#include "model/drafting/eagle_drafter.h"

#include "model/norm.h"

#include <algorithm>
#include <utility>

namespace braid::model {

HeadModel EagleDrafter::head_of(const EagleHead& eagle, const ModelShape& model, const Weights& own, const Weights& weights) {
  HeadModel head{.shape = eagle.shape,
                 .weights = own,
                 .heard_width = eagle.shape.prediction->join.inputs,
                 .read_layers = eagle.read_layers,
                 .tokens = eagle.tokens,
                 .method = DraftMethod::kDraft};
  head.shape.layers = {eagle.shape.prediction->layer};
  head.shape.output.norm = eagle.shape.prediction->norm;
  head.shape.vocab = eagle.shape.output.rows;
  head.shape.prediction.reset();
  head.weights.layers = {own.prediction.layer};
  head.weights.output_norm = own.prediction.norm;
  if (!eagle.shape.input.name.empty()) return head;
  head.weights.embedding = weights.embedding;
  head.weights.storage.insert(head.weights.storage.end(), weights.storage.begin(), weights.storage.end());
  head.shape.input.scale = model.input.scale;
  return head;
}

Result<std::unique_ptr<EagleDrafter>> EagleDrafter::create(const EagleHead& eagle, const ModelShape& model, const Weights& own,
                                                           const Weights& weights, const HeadRoom& room) {
  HeadModel head = head_of(eagle, model, own, weights);
  Result<Parts> parts = make_parts(head, room);
  if (!parts) return parts.error();
  return std::unique_ptr<EagleDrafter>(new EagleDrafter(eagle, std::move(head), room, std::move(*parts)));
}

EagleDrafter::EagleDrafter(const EagleHead& eagle, HeadModel head, const HeadRoom& room, Parts parts)
    : HeadDrafter(std::move(head), room, std::move(parts)), prediction_(*eagle.shape.prediction), norms_residual_(eagle.norms_residual) {}

void EagleDrafter::make_rows(std::span<const Input> inputs, bool are_heard, std::vector<float>& rows) {
  const std::int64_t width = head_.shape.embedding;
  const auto count = static_cast<std::int64_t>(inputs.size());
  const PredictionWeights& own = head_.weights.prediction;
  if (are_heard) {
    const Product join{&own.join.matrix, space_.residual};
    products_.run({&join, 1}, count, space_, [&](std::int64_t row, float*) { return inputs[static_cast<std::size_t>(row)].hidden; });
    products_.add_bias(own.join, space_.residual, count);
  }
  for (std::int64_t row = 0; row < count; ++row) {
    const Input& input = inputs[static_cast<std::size_t>(row)];
    const float* const hidden = are_heard ? space_.residual[row] : input.hidden;
    float* const embedded = space_.beside[row];
    table_.unpack_row(head_.weights.embedding, input.token, embedded);
    for (std::int64_t i = 0; i < width; ++i) embedded[i] *= head_.shape.input.scale;
    normalise(table_, prediction_.token_norm, own.token_norm, embedded, embedded);
    normalise(table_, prediction_.hidden_norm, own.hidden_norm, hidden, embedded + width);
    const float* const given = norms_residual_ ? embedded + width : hidden;
    rows.insert(rows.end(), given, given + width);
  }
}

void EagleDrafter::read_hidden(std::int64_t picked, float* out) const { std::copy_n(space_.residual[picked], head_.shape.embedding, out); }

}  // namespace braid::model
