#include "perf/model/recoded_weights.h"

#include "kernels/encode.h"
#include "model/tensor_reader.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace braid::perf {
namespace {

using kernels::PackedMatrix;
using kernels::WeightType;

constexpr std::size_t kAlignment = 64;

struct Matrix {
  PackedMatrix* packed;
  bool feed_forward;
};

std::vector<Matrix> matrices_of(model::Weights& weights) {
  std::vector<Matrix> matrices{{&weights.embedding, false}, {&weights.output, false}};
  for (model::LayerWeights& layer : weights.layers) {
    auto& attention = layer.attention;
    for (auto* linear :
         {&attention.query, &attention.key, &attention.value, &attention.output, &layer.convolution.input, &layer.convolution.output,
          &layer.selective.input, &layer.selective.output, &attention.gate, &layer.delta.input, &layer.delta.gate, &layer.delta.output})
      if (linear->matrix.outputs > 0) matrices.push_back({&linear->matrix, false});
    auto& feed_forward = layer.feed_forward;
    for (auto* linear : {&feed_forward.gate, &feed_forward.up, &feed_forward.down}) matrices.push_back({&linear->matrix, true});
  }
  return matrices;
}

// The panels [begin, end) of `source` as `matrix`, whose data begins at panel 0.
void recode_panels(const PackedMatrix& source, const PackedMatrix& matrix, const kernels::KernelTable& table, std::byte* data,
                   std::int64_t begin, std::int64_t end) {
  const std::int64_t first = begin * kernels::kPanel;
  const std::int64_t last = std::min(source.outputs, end * kernels::kPanel);
  const std::size_t row_bytes = kernels::stored_row_bytes(*kernels::weight_format(matrix.type), source.inputs);
  std::vector<float> values(static_cast<std::size_t>(source.inputs));
  std::vector<std::byte> stored(static_cast<std::size_t>(last - first) * row_bytes);
  for (std::int64_t row = first; row < last; ++row) {
    table.unpack_row(source, row, values.data());
    kernels::encode_row(matrix.type, values.data(), source.inputs, stored.data() + static_cast<std::size_t>(row - first) * row_bytes);
  }
  const std::size_t panel_bytes = table.packed_bytes(matrix.type, kernels::kPanel, source.inputs);  // panels follow each other
  table.pack(matrix.type, stored.data(), last - first, source.inputs, data + static_cast<std::size_t>(begin) * panel_bytes, 0, end - begin);
}

}  // namespace

const std::map<std::string, WeightType>& weight_types() {
  static const std::map<std::string, WeightType> kTypes = {
      {"f32", WeightType::kF32},   {"f16", WeightType::kF16},       {"bf16", WeightType::kBF16},     {"q8_0", WeightType::kQ8_0},
      {"q4_0", WeightType::kQ4_0}, {"q4_1", WeightType::kQ4_1},     {"q5_0", WeightType::kQ5_0},     {"q5_1", WeightType::kQ5_1},
      {"q2_k", WeightType::kQ2_K}, {"q3_k", WeightType::kQ3_K},     {"q4_k", WeightType::kQ4_K},     {"q5_k", WeightType::kQ5_K},
      {"q6_k", WeightType::kQ6_K}, {"iq4_nl", WeightType::kIQ4_NL}, {"iq4_xs", WeightType::kIQ4_XS}, {"mxfp4", WeightType::kMXFP4}};
  return kTypes;
}

WeightType fitting_type(WeightType type, std::int64_t inputs) {
  if (inputs % kernels::weight_format(type)->block_values == 0) return type;
  if (type == WeightType::kQ4_K) return WeightType::kQ5_0;
  if (type == WeightType::kQ5_K) return WeightType::kQ5_1;
  return type == WeightType::kQ6_K ? WeightType::kQ8_0 : WeightType::kIQ4_NL;
}

WantedType all_as(WeightType type) {
  return [type](const PackedMatrix& matrix, bool) { return fitting_type(type, matrix.inputs); };
}

WeightType rotated(const PackedMatrix& matrix, bool feed_forward) {
  const bool fits = matrix.inputs % kernels::weight_format(WeightType::kRotated8)->block_values == 0;
  return model::rotates(matrix.type) && feed_forward && fits ? WeightType::kRotated8 : matrix.type;
}

Result<model::Weights> recoded_weights(const model::Weights& weights, const WantedType& wanted, const kernels::KernelTable& table,
                                       kernels::ThreadTeam& team) {
  model::Weights recoded;
  recoded.embedding = weights.embedding;
  recoded.positions = weights.positions;
  recoded.output = weights.output;
  recoded.output_norm = weights.output_norm;
  recoded.rope_divisors = weights.rope_divisors;
  recoded.layers = weights.layers;
  recoded.parameters = weights.parameters;
  const bool tied = weights.output.data == weights.embedding.data;
  const auto bytes_of = [&](const PackedMatrix& matrix, WeightType type) {
    return (table.packed_bytes(type, matrix.outputs, matrix.inputs) + kAlignment - 1) / kAlignment * kAlignment;
  };
  std::vector<Matrix> others;
  for (const Matrix& matrix : matrices_of(recoded)) {
    const WeightType type = wanted(*matrix.packed, matrix.feed_forward);
    if ((tied && matrix.packed == &recoded.output) || type == matrix.packed->type) continue;
    others.push_back(matrix);
    recoded.packed_bytes += bytes_of(*matrix.packed, type);
  }
  auto storage = files::Mapping::reserve(std::max<std::uint64_t>(recoded.packed_bytes, kAlignment), "weights of another type");
  if (!storage) return storage.error();
  std::byte* next = storage->data();

  for (const Matrix& matrix : others) {
    const PackedMatrix source = *matrix.packed;
    const WeightType type = wanted(source, matrix.feed_forward);
    *matrix.packed = {.type = type, .outputs = source.outputs, .inputs = source.inputs, .data = next};
    team.for_chunks(source.panels(), 4,
                    [&](std::int64_t begin, std::int64_t end, int) { recode_panels(source, *matrix.packed, table, next, begin, end); });
    next += bytes_of(source, type);
  }
  recoded.storage.push_back(std::make_shared<const files::Mapping>(std::move(*storage)));
  if (tied) recoded.output = recoded.embedding;
  return recoded;
}

}  // namespace braid::perf
