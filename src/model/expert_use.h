// What of a mixture's experts a token reads.
#pragma once

#include "files/gguf.h"
#include "model/model_shape.h"

#include <cstdint>
#include <string>
#include <vector>

namespace braid::model {

// Of layers whose experts are alike; bytes as the file has them, of one layer.
struct ExpertUse {
  std::int32_t layers = 0;
  std::int32_t experts = 0;
  std::int32_t chosen = 0;         // by each token
  std::string types;               // of their matrices, "Q4_K, Q6_K"
  std::uint64_t expert_bytes = 0;  // of one expert
  std::uint64_t shared_bytes = 0;  // of the network of all rows beside them

  std::uint64_t all_bytes() const { return shared_bytes + static_cast<std::uint64_t>(experts) * expert_bytes; }
  std::uint64_t read_bytes() const { return shared_bytes + static_cast<std::uint64_t>(chosen) * expert_bytes; }
};

// One entry for each kind, in the order of layers; none for a model without experts. `file` is the one of the shape.
std::vector<ExpertUse> expert_use(const ModelShape& model, const files::GgufFile& file);

}  // namespace braid::model
