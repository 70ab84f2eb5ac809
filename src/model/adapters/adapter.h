// What changes some of a model's matrices and norms for the requests that name it (Hu et al. 2021), ready to compute with.
#pragma once

#include "files/mapping.h"
#include "kernels/kernel_table.h"
#include "kernels/low_rank.h"
#include "model/class_head.h"
#include "model/copies.h"
#include "model/weights.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace braid::model {

// up (down x), both transposed: columns are added up (kernels/low_rank.h). Rows of `down` lie one after the other, of `up` groups of columns,
// so that both are read in order. For an embedding `down` has a row for each token.
struct LowRankFactors {
  static constexpr std::int32_t kMostRank = 1024;

  std::int32_t rank = 0;  // 0: none
  std::int64_t inputs = 0;
  float scale = 1.0F;  // of the product
  bool half = false;   // bf16, otherwise float32
  std::int64_t down_stride = 0;
  std::int64_t up_columns = 0;      // outputs, as whole groups
  const std::byte* down = nullptr;  // [inputs, down_stride]
  const std::byte* up = nullptr;    // [groups, rank, kColumnGroup]

  std::int64_t up_place(std::int64_t r, std::int64_t output) const {
    return (output / kernels::kColumnGroup * rank + r) * kernels::kColumnGroup + output % kernels::kColumnGroup;
  }

  std::size_t value_bytes() const { return half ? 2 : 4; }
};

// y = magnitude * (W x + scale up (down x)) + bias, where W may be a matrix of the adapter's own.
struct AdaptedMatrix {
  LowRankFactors low_rank;
  std::vector<float> magnitude;       // [outputs] (DoRA, Liu et al. 2024), what the rows of the sum are multiplied by; empty: ones
  std::vector<float> bias;            // [outputs], what is added to the model's own; empty: zeros
  kernels::PackedMatrix replacement;  // no inputs: none
  // Of some tokens' rows of an embedding or a head, in ascending order; nothing else is there then.
  std::vector<std::int32_t> tokens;
  std::vector<float> rows;  // of an embedding [tokens, inputs], of a head [inputs, whole_column_groups(tokens)]
  bool is_table = false;    // they are an embedding's
};

// A revision of an adapter. Immutable; any thread.
struct Adapter {
  std::string revision;             // 32 hexadecimal digits, of all that its answers depend on
  std::vector<std::int32_t> place;  // by PackedMatrix::number: index into `matrices`, or -1
  std::vector<AdaptedMatrix> matrices;
  std::vector<std::int32_t> norm_place;  // likewise, by NormWeights::number: index into `norms`, or -1
  std::vector<NormWeights> norms;        // in the place of the base's
  files::Mapping storage;                // what matrices point into
  ClassHead head;                        // in place of the base's, or where it has none; no classes: none
  std::int64_t parameters = 0;
  std::int32_t rank = 0;    // the largest
  std::int64_t widest = 0;  // the largest down_stride
  bool has_halves = false;  // of norms whose other half is the base's, or biases that are added to the base's

  const AdaptedMatrix* find(std::uint32_t number) const { return find(matrices, place, number); }
  const NormWeights* find_norm(std::uint32_t number) const { return find(norms, norm_place, number); }
  // Whether it holds for one revision of the base's weights alone: magnitudes and such halves follow from them.
  bool follows_weights() const {
    return has_halves || std::ranges::any_of(matrices, [](const AdaptedMatrix& m) { return !m.magnitude.empty(); });
  }
  // Whether its parts can be taken in a share only, or beside those of others.
  bool is_linear() const {
    return head.classes() == 0 && norms.empty() && std::ranges::all_of(matrices, [](const AdaptedMatrix& m) {
             return m.magnitude.empty() && m.replacement.inputs == 0 && m.tokens.empty();
           });
  }

 private:
  template <class T>
  static const T* find(const std::vector<T>& all, const std::vector<std::int32_t>& places, std::uint32_t number) {
    const std::int32_t at = number < places.size() ? places[number] : -1;
    return at < 0 ? nullptr : &all[static_cast<std::size_t>(at)];
  }
};

class Decoder;

// What a request uses: several adapters together, each times a scale. One that is not linear is alone, and whole.
struct AdapterSet {
  struct Part {
    std::shared_ptr<const Adapter> adapter;
    float scale = 1.0F;
    std::shared_ptr<const Copies> copies = {};  // null: it is computed with here
    std::shared_ptr<const void> name = {};      // that it was asked for by: what befalls that befalls no other one's of the same adapter
  };

  explicit AdapterSet(std::vector<Part> its_parts, std::shared_ptr<const Decoder> its_decoder = nullptr)
      : parts(std::move(its_parts)), decoder(std::move(its_decoder)) {
    for (const Part& part : parts) width += part.adapter->widest;
  }

  // The only one's of a set that is not empty, where what it has of the matrix cannot be shared.
  const AdaptedMatrix* whole(std::uint32_t number) const { return parts.front().adapter->find(number); }
  const NormWeights& norm(const NormWeights& own) const {
    const NormWeights* other = parts.front().adapter->find_norm(own.number);
    return other != nullptr ? *other : own;
  }

  const std::vector<Part> parts;                 // none: the weights as they are
  const std::shared_ptr<const Decoder> decoder;  // the revision of the weights; null: the first one
  std::int64_t width = 0;                        // floats that come down for one matrix
};

}  // namespace braid::model
