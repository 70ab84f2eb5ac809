#include "dense_weights.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace braid::perf {
namespace {

using kernels::PackedMatrix;
using kernels::WeightType;

constexpr std::size_t kAlignment = 64;

std::vector<PackedMatrix*> matrices_of(model::Weights& weights) {
  std::vector<PackedMatrix*> matrices{&weights.embedding, &weights.output};
  for (model::LayerWeights& layer : weights.layers)
    for (PackedMatrix* matrix :
         {&layer.query, &layer.key, &layer.value, &layer.attention_output, &layer.gate, &layer.up, &layer.down})
      matrices.push_back(matrix);
  return matrices;
}

}  // namespace

Result<model::Weights> dense_weights(const model::Weights& weights, const kernels::KernelTable& table, kernels::ThreadTeam& team) {
  model::Weights dense;
  dense.embedding = weights.embedding;
  dense.output = weights.output;
  dense.output_norm = weights.output_norm;
  dense.rope_divisors = weights.rope_divisors;
  dense.layers = weights.layers;
  dense.parameters = weights.parameters;
  const bool tied = weights.output.data == weights.embedding.data;
  const auto bytes_of = [&](const PackedMatrix& matrix) {
    const std::size_t bytes = table.packed_bytes(WeightType::kF32, matrix.outputs, matrix.inputs);
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  };
  for (const PackedMatrix* matrix : matrices_of(dense))
    if (!tied || matrix != &dense.output) dense.packed_bytes += bytes_of(*matrix);
  auto storage = model::Mapping::reserve(dense.packed_bytes, "float32 weights");
  if (!storage) return storage.error();
  dense.storage = std::move(*storage);

  std::byte* next = dense.storage.data();
  for (PackedMatrix* matrix : matrices_of(dense)) {
    if (tied && matrix == &dense.output) continue;
    const PackedMatrix packed = *matrix;
    const std::size_t panel_bytes = table.packed_bytes(WeightType::kF32, kernels::kPanel, packed.inputs);  // panels follow each other
    team.for_chunks(packed.panels(), 4, [&](std::int64_t begin, std::int64_t end, int) {
      const std::int64_t first = begin * kernels::kPanel;
      const std::int64_t last = std::min(packed.outputs, end * kernels::kPanel);
      std::vector<float> rows(static_cast<std::size_t>((last - first) * packed.inputs));
      for (std::int64_t row = first; row < last; ++row) table.unpack_row(packed, row, rows.data() + (row - first) * packed.inputs);
      table.pack(WeightType::kF32, reinterpret_cast<const std::byte*>(rows.data()), last - first, packed.inputs,
                 next + static_cast<std::size_t>(begin) * panel_bytes, 0, end - begin);
    });
    *matrix = {.type = WeightType::kF32, .outputs = packed.outputs, .inputs = packed.inputs, .data = next};
    next += bytes_of(packed);
  }
  if (tied) dense.output = dense.embedding;
  return dense;
}

}  // namespace braid::perf
