// Mixtures of experts as GGUF files describe them.
#pragma once

#include "model/families/gguf_keys.h"
#include "model/model_shape.h"

namespace braid::model {

// What a family's files mean where no key says it.
struct RouterHabits {
  RouterShape::Scoring scoring = RouterShape::Scoring::kSoftmax;
  bool normalised = false;
  std::int32_t group_best = 1;
  float sum_epsilon = 0.0F;
};

// Gives experts to the layers that have a router in the file. Networks of all rows beside them are found by their tensors.
void add_experts(GgufKeys& keys, ModelShape& model, const RouterHabits& habits);

// Layers at the end predict tokens further ahead ("nextn_predict_layers"): the first of them becomes the model's head for that, where the file
// has it whole. Others go; their tensors may be there. Called when the layers are complete.
void take_prediction_layers(GgufKeys& keys, ModelShape& model);

}  // namespace braid::model
