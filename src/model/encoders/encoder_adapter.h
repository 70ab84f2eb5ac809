// What changes some of an encoder's weights for the texts that name it, ready to compute with.
#pragma once

#include "model/encoders/encoder_shape.h"
#include "model/encoders/encoder_weights.h"
#include "model/networks/layer_tensors.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace braid::model {

// y = magnitude * (W x + up (down x)) + bias, where W may be a matrix of the adapter's own.
struct AdaptedEncoderMatrix {
  TaskMatrices low_rank;                   // `up` is times its scale, and has a bias of its own where the product has one; no outputs: none
  std::vector<float> magnitude;            // [outputs] (DoRA), empty: ones
  std::optional<std::vector<float>> bias;  // instead of the base's
  LayerMatrix replacement;                 // likewise; no outputs: none

  bool is_linear() const { return magnitude.empty() && !bias && replacement.matrix.outputs == 0; }
};

struct AdaptedTable {
  std::vector<float> rows;  // instead of the base's, at least as many; empty: the base's
  TaskRows low_rank;        // the directions times the scale; empty: nothing is added
};

// A head of the adapter's own, in place of the base's or where that has none.
struct OwnEncoderHead {
  EncoderHead shape;
  EncoderHeadWeights weights;  // numbered behind the base's
};

// A revision of an adapter. Immutable; any thread.
struct EncoderAdapter {
  std::string revision;                    // 32 hexadecimal digits, of all that its answers depend on, besides the base
  std::vector<std::int32_t> matrix_place;  // by PackedMatrix::number: index into `matrices`, or -1
  std::vector<AdaptedEncoderMatrix> matrices;
  std::vector<std::int32_t> norm_place;  // likewise
  std::vector<EncoderNormWeights> norms;
  AdaptedTable tokens, positions, types;
  std::optional<OwnEncoderHead> head;
  std::int64_t parameters = 0;
  std::int32_t rank = 0;  // the largest
  std::uint64_t bytes = 0;

  const AdaptedEncoderMatrix* find(std::uint32_t number) const { return find(matrices, matrix_place, number); }
  const EncoderNormWeights* find_norm(std::uint32_t number) const { return find(norms, norm_place, number); }
  // Whether it can be taken in a share, and beside others.
  bool is_linear() const {
    return !head && norms.empty() && tokens.rows.empty() && positions.rows.empty() && types.rows.empty() &&
           std::ranges::all_of(matrices, &AdaptedEncoderMatrix::is_linear);
  }

 private:
  template <class T>
  static const T* find(const std::vector<T>& all, const std::vector<std::int32_t>& place, std::uint32_t number) {
    const std::int32_t at = number < place.size() ? place[number] : -1;
    return at < 0 ? nullptr : &all[static_cast<std::size_t>(at)];
  }
};

// What a text uses: several adapters together, each times a scale. One that is not linear is alone, and whole.
struct EncoderAdapterSet {
  struct Part {
    std::shared_ptr<const EncoderAdapter> adapter;
    float scale = 1.0F;
  };
  std::vector<Part> parts;  // not empty

  // The only one's of a set, where what it has cannot be shared.
  const EncoderAdapter& whole() const { return *parts.front().adapter; }
  const EncoderNormWeights& norm(const EncoderNormWeights& own) const {
    const EncoderNormWeights* other = whole().find_norm(own.number);
    return other != nullptr ? *other : own;
  }
  bool changes(std::uint32_t matrix) const {
    return std::ranges::any_of(parts, [matrix](const Part& part) { return part.adapter->find(matrix) != nullptr; });
  }
};

// Of each of some rows; empty: none of them uses any. They live as long as who computes with them.
using RowAdapters = std::span<const EncoderAdapterSet* const>;

// `each(first, end, set)` for rows that use the same, side by side.
template <class Each>
void for_runs(RowAdapters of, Each&& each) {
  for (std::size_t first = 0, end = 0; first < of.size(); first = end) {
    for (end = first + 1; end < of.size() && of[end] == of[first];) ++end;
    each(static_cast<std::int64_t>(first), static_cast<std::int64_t>(end), of[first]);
  }
}

}  // namespace braid::model
