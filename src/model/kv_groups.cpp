#include "model/kv_groups.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace braid::model {
namespace {

constexpr std::size_t kMostGroups = 16;
constexpr std::size_t kUnusedPart = 8;  // what may be unused: this part of all

// Layers that are alike.
struct LayerKind {
  StoredLayer layer;
  std::vector<std::size_t> layers;
  std::size_t layer_bytes = 0;

  std::size_t layers_in(std::size_t block_bytes) const { return std::min(layers.size(), block_bytes / layer_bytes); }
  std::size_t groups_in(std::size_t block_bytes) const {
    const std::size_t most = layers_in(block_bytes);
    return (layers.size() + most - 1) / most;
  }
  std::size_t bytes() const { return layers.size() * layer_bytes; }
};

KvLayout layout_of(const StoredLayer& layer, std::size_t layers, std::int32_t block_tokens, kernels::KvType type) {
  return {.layers = static_cast<std::int32_t>(layers),
          .kv_heads = layer.kv_heads,
          .head_dim = layer.head_dim,
          .block_tokens = block_tokens,
          .type = type,
          .latent = layer.latent};
}

std::vector<LayerKind> layer_kinds(const std::vector<StoredLayer>& layers, std::int32_t block_tokens, kernels::KvType type) {
  std::vector<LayerKind> kinds;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].kv_heads == 0) continue;
    auto known = std::ranges::find(kinds, layers[i], &LayerKind::layer);
    if (known == kinds.end()) known = kinds.insert(known, {layers[i], {}, layout_of(layers[i], 1, block_tokens, type).block_bytes()});
    known->layers.push_back(i);
  }
  const auto sees_all = [](const LayerKind& kind) { return kind.layer.visibility.window == 0; };
  std::stable_partition(kinds.begin(), kinds.end(), sees_all);  // clang 14 refuses the one of std::ranges
  return kinds;
}

struct Choice {
  std::size_t block_bytes = 0;
  std::size_t groups = 0;
  std::size_t unused = 0;
};

Choice choose_block(const std::vector<LayerKind>& kinds) {
  const auto add = [](std::size_t sum, const LayerKind& kind) { return sum + kind.bytes(); };
  const std::size_t used = std::accumulate(kinds.begin(), kinds.end(), std::size_t{0}, add);
  const std::size_t widest = std::ranges::max(kinds, {}, &LayerKind::layer_bytes).layer_bytes;
  Choice best;
  const auto is_better = [&](const Choice& choice) {
    if (best.groups == 0) return true;
    const auto wastes = [&](const Choice& one) { return one.unused * kUnusedPart > one.unused + used; };
    if (wastes(choice) != wastes(best)) return wastes(best);
    return wastes(choice) ? choice.unused < best.unused : std::pair(choice.groups, choice.unused) < std::pair(best.groups, best.unused);
  };
  for (const LayerKind& kind : kinds)
    for (std::size_t parts = 1; parts <= std::min(kMostGroups, kind.layers.size()); ++parts) {
      Choice choice{.block_bytes = (kind.layers.size() + parts - 1) / parts * kind.layer_bytes};
      if (choice.block_bytes < widest) continue;
      for (const LayerKind& other : kinds) choice.groups += other.groups_in(choice.block_bytes);
      choice.unused = choice.groups * choice.block_bytes - used;
      if (choice.groups <= std::max(kMostGroups, kinds.size()) && is_better(choice)) best = choice;
    }
  return best;
}

}  // namespace

KvGroups KvGroups::one(const KvLayout& layout, const step::Visibility& visibility) {
  KvGroups all{.groups = {{visibility, layout}}, .places = {}};
  for (std::int32_t layer = 0; layer < layout.layers; ++layer) all.places.push_back({0, layer});
  return all;
}

KvGroups KvGroups::none(std::size_t layers, std::int32_t block_tokens, kernels::KvType type) {
  return {.groups = {{{0, 0}, layout_of({}, 0, block_tokens, type)}}, .places = std::vector<KvPlace>(layers, {kNoGroup, 0})};
}

KvGroups KvGroups::of_layers(std::size_t begin, std::size_t end) const {
  KvGroups own = *this;
  for (KvGroup& group : own.groups) group.layout.layers = 0;
  for (std::size_t layer = 0; layer < places.size(); ++layer) {
    KvPlace& place = own.places[layer];
    if (place.group == kNoGroup) continue;
    place = layer < begin || layer >= end ? KvPlace{kNoGroup, 0}
                                          : KvPlace{place.group, own.groups[static_cast<std::size_t>(place.group)].layout.layers++};
  }
  own.least_block_bytes = std::max<std::size_t>(own.least_block_bytes, 64);  // also where none of them stores anything
  return own;
}

std::size_t KvGroups::block_bytes() const {
  std::size_t most = least_block_bytes;
  for (const KvGroup& group : groups) most = std::max(most, group.layout.block_bytes());
  return most;
}

std::vector<step::Visibility> KvGroups::visibilities() const {
  std::vector<step::Visibility> all;
  for (const KvGroup& group : groups) all.push_back(group.visibility);
  return all;
}

std::vector<double> KvGroups::block_use() const {
  std::vector<double> all;
  for (std::int32_t group = 0; group < count(); ++group)
    all.push_back(static_cast<double>(layout(group).block_bytes()) / static_cast<double>(block_bytes()));
  return all;
}

KvGroups group_layers(const std::vector<StoredLayer>& layers, std::int32_t block_tokens, kernels::KvType type) {
  const std::vector<LayerKind> kinds = layer_kinds(layers, block_tokens, type);
  const Choice choice = choose_block(kinds);
  KvGroups all{.groups = {}, .places = std::vector<KvPlace>(layers.size(), {kNoGroup, 0})};
  for (const LayerKind& kind : kinds) {
    const std::size_t groups = kind.groups_in(choice.block_bytes);
    for (std::size_t group = 0; group < groups; ++group) {  // as even as they go
      const std::size_t begin = kind.layers.size() * group / groups;
      const std::size_t end = kind.layers.size() * (group + 1) / groups;
      for (std::size_t i = begin; i < end; ++i) all.places[kind.layers[i]] = {all.count(), static_cast<std::int32_t>(i - begin)};
      all.groups.push_back({kind.layer.visibility, layout_of(kind.layer, end - begin, block_tokens, type)});
    }
  }
  return all;
}

}  // namespace braid::model
