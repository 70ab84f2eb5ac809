// An adapter as its files have it, with the names of the base's file. Nothing of it has been held against a base.
#pragma once

#include "braid/result.h"
#include "files/byte_source.h"
#include "kernels/weight_type.h"
#include "model/adapters/peft_config.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace braid::model {

// Of the adapter's file. Without shape: there is none.
struct StoredTensor {
  std::string name;  // as the file has it
  kernels::WeightType type = kernels::WeightType::kF32;
  std::vector<std::int64_t> shape;  // rows first
  std::span<const std::byte> bytes;

  bool empty() const { return shape.empty(); }
  // Whether no value is infinite or no number: one of them would end every answer.
  bool is_finite() const;
  // Values [first, first + count) of a row; of a vector, its only row. A type of blocks is read in whole rows.
  void read_row(std::int64_t row, float* out) const;
  std::int64_t columns() const { return shape.back(); }
};

// What is said of one of the base's tensors, matrices or norms, or of one of the matrices in it.
struct StoredMatrix {
  std::string name;          // in the base's file, without ".weight"
  std::int32_t expert = -1;  // which of a tensor's matrices; -1: all of it
  float scale = 1.0F;
  StoredTensor down;         // [rank, inputs], of an embedding [rank, vocab]
  bool turned = false;       // it is stored as [inputs, rank]
  StoredTensor up;           // [outputs, rank]
  StoredTensor up_bias;      // [outputs], of the product, so that the scale is its, too
  StoredTensor magnitude;    // [outputs]
  StoredTensor bias;         // [outputs], instead of the base's
  StoredTensor replacement;  // [outputs, inputs], likewise; or a norm's weights
  StoredTensor rows = {};    // [tokens, inputs], of an embedding or a head, instead of the base's of these tokens
  std::vector<std::int32_t> tokens = {};
  // As GgufTensor's: of the above rows those that are the base's, in its order; its inputs; what rows are multiplied by.
  std::vector<std::int32_t> order = {};
  std::vector<std::int32_t> columns = {};
  std::vector<float> factors = {};
  float plus = 0.0F;         // likewise, what is added to a norm's weights
  bool across = false;       // the base's matrix has these rows as its columns: heads' keys
  bool lies_turned = false;  // whole weights are stored as [inputs, outputs]

  const std::string& said_by() const;  // a tensor's name, for messages
};

// What a head for classes is called among a base's matrices.
inline constexpr char kHeadName[] = "cls.output";

struct StoredAdapter {
  std::string name;  // of the folder or file, for messages
  std::vector<std::shared_ptr<const files::ByteSource>> sources;
  std::vector<StoredMatrix> matrices;
  bool all_layers = false;                        // what it says of a layer's matrix it is to say of every layer that has one
  std::shared_ptr<const PeftConfig> config = {};  // of a folder of PEFT; null: it was a GGUF file

  // 32 hexadecimal digits of all that its answers depend on, besides the base.
  std::string revision() const;
};

}  // namespace braid::model
