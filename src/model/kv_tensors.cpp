#include "model/kv_tensors.h"

#include "kernels/half.h"
#include "kernels/kv_order.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <string>
#include <string_view>

namespace braid::model {

namespace {

// One of the tensors of a layer, and where its elements lie within the bytes of a head in a block.
struct Kind {
  const char* name;
  const char* dtype;
  std::size_t element_bytes;
  std::size_t offset;     // in the head
  std::int64_t width;     // elements of a token and head
  kernels::KvType order;  // of the block (kv_order.h)
  bool by_token;          // [token, element] in the block; else [element, token]
  bool finite = false;    // its elements must be (KvLayer)
};

const char* dtype_of(kernels::KvType type) {
  switch (type) {
    case kernels::KvType::kF32:
      return "F32";
    case kernels::KvType::kF16:
      return "F16";
    case kernels::KvType::kBF16:
      return "BF16";
    case kernels::KvType::kInt8:
      return "I8";
  }
  return "";
}

std::vector<Kind> kinds_of(const KvLayout& layout) {
  const char* dtype = dtype_of(layout.type);
  const std::int64_t groups = (layout.head_dim + kernels::kKvGroup - 1) / kernels::kKvGroup;
  if (layout.latent) {
    std::vector<Kind> kinds = {
        {"latent", dtype, layout.value_bytes(), 0, layout.head_dim, layout.type, true, layout.type == kernels::KvType::kBF16}};
    if (layout.type == kernels::KvType::kInt8) kinds.push_back({"latent_scale", "F16", 2, layout.half_bytes(), groups, layout.type, false});
    return kinds;
  }
  std::vector<Kind> kinds = {{"key", dtype, layout.value_bytes(), 0, layout.head_dim, layout.type, false},
                             {"value", dtype, layout.value_bytes(), layout.half_bytes(), layout.head_dim, layout.type, true,
                              layout.type == kernels::KvType::kBF16}};
  if (layout.type == kernels::KvType::kInt8) {
    kinds.push_back({"key_scale", "F16", 2, 2 * layout.half_bytes(), groups, layout.type, false});
    kinds.push_back({"value_scale", "F16", 2, 2 * layout.half_bytes() + layout.scale_bytes() / 2, groups, layout.type, false});
  }
  return kinds;
}

std::string name_of(std::size_t layer, const Kind& kind) { return fmt::format("layers.{}.{}", layer, kind.name); }

std::string state_name(std::size_t layer, std::size_t part) { return fmt::format("layers.{}.state.{}", layer, part); }

std::vector<std::int64_t> shape_of(const KvLayout& layout, const Kind& kind, std::int64_t tokens) {
  return {tokens, layout.kv_heads, kind.width};
}

// Calls use(layer, its place, its layout, kind) for each tensor.
template <class Use>
void for_tensors(const KvGroups& groups, Use use) {
  for (std::size_t layer = 0; layer < groups.places.size(); ++layer) {
    const KvPlace& place = groups.places[layer];
    if (place.group == kNoGroup) continue;
    for (const Kind& kind : kinds_of(groups.layout(place.group))) use(layer, place, groups.layout(place.group), kind);
  }
}

// Calls move(byte in the block, byte in the tensor) for each element of a layer's kind in the first `count` tokens of a block.
template <class Move>
void for_elements(const KvLayout& layout, std::int32_t layer, const Kind& kind, std::int64_t first_token, std::int64_t count, Move move) {
  for (std::int32_t head = 0; head < layout.kv_heads; ++head) {
    const std::size_t base =
        static_cast<std::size_t>(layer) * layout.layer_bytes() + static_cast<std::size_t>(head) * layout.head_bytes() + kind.offset;
    for (std::int64_t token = 0; token < count; ++token) {
      for (std::int64_t i = 0; i < kind.width; ++i) {
        const std::int64_t in_block = kind.by_token ? kernels::value_element(kind.order, kind.width, token, i)
                                                    : kernels::key_element(kind.order, layout.block_tokens, token, i);
        const std::int64_t in_tensor = ((first_token + token) * layout.kv_heads + head) * kind.width + i;
        move(base + static_cast<std::size_t>(in_block) * kind.element_bytes, static_cast<std::size_t>(in_tensor) * kind.element_bytes);
      }
    }
  }
}

}  // namespace

KvTensors::KvTensors(const KvGroups& groups, std::int64_t tokens) : groups_(groups), tokens_(tokens) {
  for_tensors(groups_, [&](std::size_t, const KvPlace&, const KvLayout& layout, const Kind& kind) {
    bytes_.emplace_back(static_cast<std::size_t>(tokens * layout.kv_heads * kind.width) * kind.element_bytes);
  });
}

void KvTensors::put_block(std::int64_t index, std::int32_t group, std::span<const std::byte> block) {
  const std::int64_t first = index * groups_.block_tokens();
  const std::int64_t count = std::min<std::int64_t>(groups_.block_tokens(), tokens_ - first);
  auto tensor = bytes_.begin();
  for_tensors(groups_, [&](std::size_t, const KvPlace& place, const KvLayout& layout, const Kind& kind) {
    std::byte* const to = (tensor++)->data();
    if (place.group != group) return;
    for_elements(layout, place.index, kind, first, count, [&](std::size_t in_block, std::size_t in_tensor) {
      std::memcpy(to + in_tensor, block.data() + in_block, kind.element_bytes);
    });
  });
}

void KvTensors::put_state(std::int32_t part, std::span<const std::byte> block) {
  states_.resize(static_cast<std::size_t>(groups_.states.blocks()));
  states_[static_cast<std::size_t>(part)].assign(block.begin(), block.end());
}

files::SafeTensors KvTensors::contents() const {
  files::SafeTensors contents;
  if (!states_.empty())
    groups_.states.for_parts([&](std::size_t layer, std::size_t part, const StateLayout::Place& place, std::int64_t floats) {
      const std::span<const std::byte> block = states_[static_cast<std::size_t>(place.block)];
      contents.tensors.emplace(
          state_name(layer, part),
          files::SafeTensor{"F32", {floats}, block.subspan(place.offset, static_cast<std::size_t>(floats) * sizeof(float))});
    });
  auto tensor = bytes_.begin();
  for_tensors(groups_, [&](std::size_t layer, const KvPlace&, const KvLayout& layout, const Kind& kind) {
    contents.tensors.emplace(name_of(layer, kind), files::SafeTensor{kind.dtype, shape_of(layout, kind, tokens_), *tensor++});
  });
  return contents;
}

namespace {

Result<const files::SafeTensor*> find_tensor(const files::SafeTensors& from, const std::string& name, std::string_view dtype,
                                             const std::vector<std::int64_t>& shape) {
  const auto found = from.tensors.find(name);
  if (found == from.tensors.end()) return Error{ErrorCode::kBadFile, fmt::format("the tensor '{}' is missing", name), {}};
  const files::SafeTensor& tensor = found->second;
  if (tensor.dtype == dtype && tensor.shape == shape) return &tensor;
  return Error{ErrorCode::kBadFile,
               fmt::format("the tensor '{}' is {} [{}], expected {} [{}]", name, tensor.dtype, fmt::join(tensor.shape, ", "), dtype,
                           fmt::join(shape, ", ")),
               {}};
}

}  // namespace

Result<void> take_block(const files::SafeTensors& from, const KvGroups& groups, std::int32_t group, std::int64_t tokens, std::int64_t index,
                        std::span<std::byte> block) {
  Result<void> taken;
  for_tensors(groups, [&](std::size_t layer, const KvPlace& place, const KvLayout& layout, const Kind& kind) {
    if (place.group != group || !taken) return;
    const std::string name = name_of(layer, kind);
    const auto tensor = find_tensor(from, name, kind.dtype, shape_of(layout, kind, tokens));
    if (!tensor) {
      taken = tensor.error();
      return;
    }
    bool finite = true;
    for_elements(layout, place.index, kind, index * layout.block_tokens, layout.block_tokens,
                 [&](std::size_t in_block, std::size_t in_tensor) {
      const std::byte* element = (*tensor)->bytes.data() + in_tensor;
      if (kind.finite) finite &= kernels::is_finite_bf16(kernels::load_half(element));
      std::memcpy(block.data() + in_block, element, kind.element_bytes);
    });
    if (!finite) taken = Error{ErrorCode::kBadFile, fmt::format("the tensor '{}' holds infinities or NaNs", name), {}};
  });
  return taken;
}

Result<void> take_state(const files::SafeTensors& from, const KvGroups& groups, std::int32_t part, std::span<std::byte> block) {
  Result<void> taken;
  groups.states.for_parts([&](std::size_t layer, std::size_t index, const StateLayout::Place& place, std::int64_t floats) {
    if (place.block != part || !taken) return;
    const auto tensor = find_tensor(from, state_name(layer, index), "F32", {floats});
    if (!tensor) {
      taken = tensor.error();
      return;
    }
    std::ranges::copy((*tensor)->bytes, block.begin() + static_cast<std::ptrdiff_t>(place.offset));
  });
  return taken;
}

}  // namespace braid::model
