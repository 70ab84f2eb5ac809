#include "model/families/folder_experts.h"

#include "model/families/gguf_decoder.h"
#include "model/families/gguf_keys.h"
#include "model/families/joined_rows.h"
#include "model/row_encoding.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace braid::model {

std::optional<files::GgufTensor> join_matrices(FolderReader& in, std::string_view prefix, std::string_view suffix) {
  std::vector<files::GgufTensor> parts;
  while (auto found = in.extract(fmt::format("{}{}{}", prefix, parts.size(), suffix))) parts.push_back(std::move(*found));
  if (parts.empty()) return std::nullopt;
  const files::GgufTensor& first = parts.front();
  for (const files::GgufTensor& other : parts) {
    if (other.shape.size() == 2 && other.shape == first.shape && other.type == first.type && is_sound(other)) continue;
    in.config.fail(ErrorCode::kBadFile, fmt::format("the tensor {} does not have the shape and type of the first of its kind", other.name));
    return std::nullopt;
  }
  files::GgufTensor joined;
  joined.type = first.type;
  joined.shape = {first.shape[0], first.shape[1], static_cast<std::int64_t>(parts.size())};
  joined.coded = std::make_shared<JoinedRows>(std::move(parts));
  return joined;
}

namespace {

// One number where all layers have the same.
void set_counts(FolderReader& in, std::string_view key, const std::vector<std::int64_t>& numbers) {
  if (std::ranges::count(numbers, numbers.front()) == std::ssize(numbers)) return in.set(key, static_cast<std::uint64_t>(numbers.front()));
  in.set(key, files::GgufArray{std::vector<std::uint64_t>(numbers.begin(), numbers.end())});
}

}  // namespace

void translate_expert_keys(FolderReader& in, FolderConfig::Names width) {
  const FolderConfig::Names count = {"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"};
  const std::vector<std::int64_t> experts = in.config.counts(count, 0, 0, kMaxDimension);
  const std::int64_t most = std::ranges::max(experts);
  if (most == 0) return;
  set_counts(in, "expert_count", experts);
  set_counts(in, "expert_used_count",
             in.config.counts({"num_experts_per_tok", "moe_topk", "moe_k", "experts_per_token", "top_k_experts"}, std::nullopt, 1, most));
  if (in.config.has(width)) set_counts(in, "expert_feed_forward_length", in.config.counts(width, std::nullopt, 1, kMaxDimension));
  const FolderConfig::Names dense = {"first_k_dense_replace"};
  if (in.config.has(dense)) in.set("leading_dense_block_count", static_cast<std::uint64_t>(in.config.count(dense, 0, 0, kMaxLayers)));
  const FolderConfig::Names shared = {"n_shared_experts", "num_shared_experts", "moe_num_shared_experts"};
  if (in.config.has(shared)) in.set("expert_shared_count", static_cast<std::uint64_t>(in.config.count(shared, 0, 0, kMaxDimension)));
}

void set_shared_width(FolderReader& in, const FolderSize& size) {
  for (std::int32_t layer = 0; layer < size.layers; ++layer) {
    const std::int64_t width = in.rows(layer_tensor(layer, "ffn_up_shexp.weight"));
    if (width > 0) return in.set("expert_shared_feed_forward_length", static_cast<std::uint64_t>(width));
  }
}

void join_experts(FolderReader& in, const FolderSize& size, const ExpertNames& names) {
  const std::pair<std::string_view, std::string_view> parts[] = {
      {names.gate, "ffn_gate_exps"}, {names.up, "ffn_up_exps"}, {names.down, "ffn_down_exps"}};
  for (std::int32_t layer = 0; layer < size.layers && !in.config.error; ++layer) {
    for (const auto& [part, name] : parts) {
      auto joined = join_matrices(in, fmt::format("{}.{}.{}.", names.layers, layer, names.module), fmt::format(".{}.weight", part));
      if (!joined) continue;
      joined->name = fmt::format("blk.{}.{}.weight", layer, name);
      in.put(std::move(*joined));
    }
  }
}

void split_experts(FolderReader& in, std::string_view part, std::string_view gate, std::string_view up, bool alternate) {
  for (const std::string& name : in.of_part(part)) {
    const files::GgufTensor whole = std::move(*in.extract(name));
    if (whole.shape.size() != 3 || whole.shape[1] % 2 != 0) {
      in.config.fail(ErrorCode::kBadFile, fmt::format("the tensor {} is not the gates and ups of experts", name));
      return;
    }
    const auto width = static_cast<std::int32_t>(whole.shape[1] / 2);
    for (const bool is_up : {false, true}) {
      files::GgufTensor half = whole;
      half.name.replace(name.rfind(part), part.size(), is_up ? up : gate);
      half.shape[1] = width;
      for (std::int32_t expert = 0; expert < whole.shape[2]; ++expert)
        for (std::int32_t i = 0; i < width; ++i)
          half.order.push_back(2 * expert * width + (alternate ? 2 * i + (is_up ? 1 : 0) : i + (is_up ? width : 0)));
      in.put(std::move(half));
    }
  }
}

void drop_dimension(FolderReader& in, std::string_view part) {
  for (const std::string& name : in.of_part(part)) {
    files::GgufTensor vector = std::move(*in.extract(name));
    if (vector.shape.size() == 2 && vector.shape[1] == 1) vector.shape.pop_back();
    in.put(std::move(vector));
  }
}

void translate_router(FolderReader& in, bool normalised) {
  in.set("expert_weights_norm", in.config.flag({"norm_topk_prob"}, normalised));
  in.set("expert_weights_scale", in.config.number({"routed_scaling_factor"}, 1.0, 1e-6, 1e6));
  const std::int64_t groups = in.config.count({"n_group"}, 1, 1, 4096);
  if (groups == 1) return;
  in.set("expert_group_count", static_cast<std::uint64_t>(groups));
  in.set("expert_group_used_count", static_cast<std::uint64_t>(in.config.count({"topk_group"}, 1, 1, groups)));
}

void set_scoring(FolderReader& in, RouterShape::Scoring scoring) {
  const bool is_sigmoid = scoring == RouterShape::Scoring::kSigmoid;
  in.set("expert_gating_func", std::uint64_t{is_sigmoid ? 2U : 1U});  // llama.cpp's numbers
}

void place_prediction_layer(FolderReader& in, FolderSize& size) {
  constexpr std::pair<std::string_view, std::string_view> kParts[] = {
      {"eh_proj", "eh_proj"}, {"enorm", "enorm"}, {"hnorm", "hnorm"}, {"shared_head.norm", "shared_head_norm"}};
  const auto name_of = [&](std::string_view part) { return fmt::format("model.layers.{}.{}.weight", size.layers, part); };
  if (in.config.error || !std::ranges::all_of(kParts, [&](const auto& part) { return in.has(name_of(part.first)); })) return;
  for (const auto& [from, to] : kParts) {
    files::GgufTensor tensor = std::move(*in.extract(name_of(from)));
    tensor.name = fmt::format("blk.{}.nextn.{}.weight", size.layers, to);
    in.put(std::move(tensor));
  }
  for (const std::string_view shared : {"embed_tokens", "shared_head.head"}) in.remove(name_of(shared));  // the model's own
  ++size.layers;
  in.set("block_count", static_cast<std::uint64_t>(size.layers));
  in.set("nextn_predict_layers", std::uint64_t{1});
}

void drop_later_layers(FolderReader& in, const FolderSize& size) {
  in.remove_if([&](std::string_view name) {
    for (const std::string_view prefix : {"blk.", "model.layers."}) {
      if (!name.starts_with(prefix)) continue;
      const std::string number(name.substr(prefix.size(), name.find('.', prefix.size()) - prefix.size()));
      return number.find_first_not_of("0123456789") == std::string::npos && number.size() < 9 && std::stoi(number) >= size.layers;
    }
    return false;
  });
}

}  // namespace braid::model
