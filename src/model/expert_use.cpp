#include "model/expert_use.h"

#include "kernels/weight_type.h"

#include <algorithm>

namespace braid::model {
namespace {

using kernels::WeightType;

// Of the matrices of one network; those of an expert may be part of larger tensors.
struct NetworkBytes {
  std::uint64_t bytes = 0;
  std::string types;

  void add(const files::GgufFile& file, const LinearShape& linear) {
    const files::GgufTensor* tensor = file.tensor(linear.name + ".weight");
    if (tensor == nullptr && linear.apart) tensor = file.tensor(linear.of_expert(0).name + ".weight");
    if (tensor == nullptr) return;
    const kernels::WeightFormat* format = kernels::weight_format(static_cast<WeightType>(tensor->type));
    if (format == nullptr) return;
    bytes += kernels::stored_row_bytes(*format, linear.inputs) * static_cast<std::uint64_t>(linear.outputs);
    if (types.find(format->name) == std::string::npos) types += (types.empty() ? "" : ", ") + std::string(format->name);
  }
};

NetworkBytes bytes_of(const files::GgufFile& file, const FeedForwardShape& network) {
  NetworkBytes all;
  if (network.width == 0) return all;
  if (network.gated) all.add(file, network.gate);
  all.add(file, network.up);
  all.add(file, network.down);
  return all;
}

bool is_alike(const ExpertUse& a, const ExpertUse& b) {
  return a.experts == b.experts && a.chosen == b.chosen && a.types == b.types && a.expert_bytes == b.expert_bytes &&
         a.shared_bytes == b.shared_bytes;
}

}  // namespace

std::vector<ExpertUse> expert_use(const ModelShape& model, const files::GgufFile& file) {
  std::vector<ExpertUse> uses;
  for (const LayerShape& layer : model.layers) {
    if (!layer.experts) continue;
    const NetworkBytes each = bytes_of(file, layer.experts->each);
    const ExpertUse use{.layers = 1,
                        .experts = layer.experts->router.experts(),
                        .chosen = layer.experts->router.chosen,
                        .types = each.types,
                        .expert_bytes = each.bytes,
                        .shared_bytes = bytes_of(file, layer.feed_forward).bytes};
    const auto known = std::ranges::find_if(uses, [&](const ExpertUse& other) { return is_alike(use, other); });
    if (known == uses.end()) {
      uses.push_back(use);
    } else {
      ++known->layers;
    }
  }
  return uses;
}

}  // namespace braid::model
