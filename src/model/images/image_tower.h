// A tower that computes: images to vectors in the place of a language model's embeddings.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"
#include "model/images/tower_shape.h"
#include "model/images/tower_weights.h"
#include "step/image_encoder.h"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace braid::model {

// Immutable after construction; tier and team outlive it.
class ImageTower final : public step::ImageEncoder {
 public:
  ImageTower(TowerShape shape, TowerWeights weights, const kernels::KernelTable& table, kernels::ThreadTeam& team)
      : shape_(std::move(shape)), weights_(std::move(weights)), table_(table), team_(team) {}

  const TowerShape& shape() const { return shape_; }
  const TowerWeights& weights() const { return weights_; }
  const kernels::KernelTable& table() const { return table_; }
  kernels::ThreadTeam& team() const { return team_; }

  std::int64_t width() const { return shape_.vector_width(); }  // of a vector that stands for an embedding
  Result<void> check(const Pixels& pixels) const override;
  std::unique_ptr<step::ImagePass> begin(SharedPixels pixels) override;

 private:
  const TowerShape shape_;
  const TowerWeights weights_;
  const kernels::KernelTable& table_;
  kernels::ThreadTeam& team_;
};

}  // namespace braid::model
