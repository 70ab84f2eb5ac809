// What of a language model follows from its weights: one revision of them.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"
#include "model/adapters/adapter_table.h"
#include "model/class_head.h"
#include "model/copies.h"
#include "model/model_shape.h"
#include "model/rope.h"
#include "model/transformer.h"
#include "model/weights.h"

#include <memory>
#include <utility>
#include <vector>

namespace braid::model {

// Immutable. Made on any thread; the strand computes with it.
class Decoder {
 public:
  // All but the weights outlive it.
  Decoder(const ModelShape& model, std::shared_ptr<const Weights> its_weights, ClassHead its_head, std::vector<RopeTable> its_ropes,
          const kernels::KernelTable& kernels, kernels::ThreadTeam& team, const AdapterTable* adapters, RankGather* ranks = nullptr,
          std::shared_ptr<const Copies> its_copies = {})
      : weights(std::move(its_weights)), head(std::move(its_head)), ropes(std::move(its_ropes)), copies(std::move(its_copies)),
        transformer(model, *weights, ropes, kernels, team, adapters, ranks) {}

  const std::shared_ptr<const Weights> weights;
  const ClassHead head;
  const std::vector<RopeTable> ropes;
  const std::shared_ptr<const Copies> copies;  // with which others compute; null: these weights are computed with here
  const Transformer transformer;
};

}  // namespace braid::model
