#include "model/families/layer_heads.h"

#include "model/families/gguf_keys.h"

#include <cstdint>
#include <fmt/format.h>
#include <string>
#include <utility>
#include <vector>

namespace braid::model {
namespace {

// Of one layer's attention.
struct Heads {
  std::int64_t count = 0;  // of keys
  std::int64_t size = 0;
};

// As "per_layer_config" says it, or by two keys for full layers.
std::vector<Heads> heads_of(FolderReader& in, const FolderSize& size, const std::vector<bool>& windowed) {
  FolderConfig& config = in.config;
  std::vector<Heads> all(windowed.size(), {size.kv_heads, size.head_dim});
  if (auto own = config.part("per_layer_config")) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      auto layer = own->part(std::to_string(i));
      if (!layer) continue;
      all[i] = {layer->count({"num_key_value_heads"}, all[i].count, 1, kMaxHeads), layer->count({"head_dim"}, all[i].size, 1, kMaxHeadDim)};
      if (layer->error && !config.error) config.error = layer->error;
    }
    return all;
  }
  const std::int64_t wide = config.count({"global_head_dim"}, 512, 1, kMaxHeadDim);
  const bool few = config.flag({"attention_k_eq_v"}, false);
  const std::int64_t kv_heads = few ? config.count({"num_global_key_value_heads"}, size.kv_heads, 1, kMaxHeads) : size.kv_heads;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!windowed[i]) all[i] = {kv_heads, wide};
  return all;
}

// Every sixth layer is full where the configuration says nothing; the last one always is.
std::vector<bool> windowed_layers_of(FolderReader& in, const FolderSize& size) {
  std::vector<bool> windowed;
  const std::vector<std::string> types = in.config.texts("layer_types");
  for (std::size_t i = 0; std::cmp_less(i, size.layers); ++i)
    windowed.push_back(i < types.size() ? types[i] == "sliding_attention" : (i + 1) % 6 != 0);
  windowed.back() = false;
  return windowed;
}

}  // namespace

void translate_layer_heads(FolderReader& in, FolderSize& size) {
  const std::vector<bool> windowed = windowed_layers_of(in, size);
  const std::vector<Heads> heads = heads_of(in, size, windowed);
  const std::int64_t full = heads.back().size;
  std::int64_t local = size.head_dim;
  for (std::size_t i = 0; i < heads.size(); ++i)
    if (windowed[i]) local = heads[i].size;
  std::vector<std::uint64_t> kv_heads;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    kv_heads.push_back(static_cast<std::uint64_t>(heads[i].count));
    if (heads[i].size != (windowed[i] ? local : full))
      in.config.fail(ErrorCode::kUnsupported, "heads differ in size between layers of one kind, which this build cannot compute");
  }
  in.set("attention.head_count_kv", files::GgufArray{std::move(kv_heads)});
  for (const std::string_view part : {"attention.key_length", "attention.value_length"}) {
    in.set(part, static_cast<std::uint64_t>(full));
    in.set(fmt::format("{}_swa", part), static_cast<std::uint64_t>(local));
  }
  in.set("attention.sliding_window", static_cast<std::uint64_t>(in.config.count({"sliding_window"}, 512, 1, kMaxContext)));
  in.set("attention.sliding_window_pattern", files::GgufArray{windowed});
  double turning = 1.0;
  if (auto rope = in.config.part("rope_parameters"))
    if (auto sliding = rope->part("sliding_attention")) turning = sliding->number({"partial_rotary_factor"}, 1.0, 0.0, 1.0);
  in.set("rope.dimension_count", static_cast<std::uint64_t>(full));
  in.set("rope.dimension_count_swa", static_cast<std::uint64_t>(static_cast<double>(local) * turning));
  size.head_dim = static_cast<std::int32_t>(full);
}

}  // namespace braid::model
