// Which matrices of a base LoRA may be beside, and what they are called in an adapter.
#include "model/families/families.h"
#include "model/training/tuned_layer.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string_view>

namespace braid::model {
namespace {

struct KnownModule {
  std::string_view name;
  std::string_view path;  // within a layer
};
constexpr std::array<KnownModule, TunedLayer::kModules> kKnown = {{{"q_proj", "self_attn.q_proj"},
                                                                   {"k_proj", "self_attn.k_proj"},
                                                                   {"v_proj", "self_attn.v_proj"},
                                                                   {"o_proj", "self_attn.o_proj"},
                                                                   {"gate_proj", "mlp.gate_proj"},
                                                                   {"up_proj", "mlp.up_proj"},
                                                                   {"down_proj", "mlp.down_proj"}}};

// The tensors are to lie in the base's file as they do in its own code, but for the order of their rows.
Result<void> place_module(const files::HfFolder& folder, const LinearShape& linear, TunedModule& module) {
  const auto places = place_modules(folder, {{module.name, {linear.outputs, linear.inputs}}});
  if (!places)
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("LoRA is not trained on this model, whose modules are named otherwise than Llama's: {}", places.error().message),
        {}};
  const ModulePlace* const place = places->size() == 1 ? &places->front() : nullptr;
  if (place == nullptr || place->tensor != linear.name || !place->columns.empty() || !place->factors.empty() || place->across ||
      place->turned)
    return Error{
        ErrorCode::kUnsupported, fmt::format("LoRA is not trained on this model, whose {} is otherwise than Llama's", module.name), {}};
  module.order = place->order;
  return {};
}

}  // namespace

Result<std::shared_ptr<TunableLayer>> tune_last_layer(const AdaptedBase& base, const Decoder& decoder, const kernels::KernelTable& table,
                                                      const LoraShape& lora, std::uint64_t most_bytes) {
  if (const Result<void> fits = check_last_layer(base.shape); !fits) return fits.error();
  if (const std::uint64_t bytes = frozen_bytes(base.shape); bytes > most_bytes)
    return Error{ErrorCode::kUnsupported,
                 fmt::format("the last layer takes {} MiB as it is trained, and of what LoRA has {} MiB are left: wait for other jobs",
                             (bytes >> 20U) + 1, most_bytes >> 20U),
                 {}};
  const LayerShape& shape = base.shape.layers.back();
  const std::array<const LinearShape*, TunedLayer::kModules> linears = {
      &shape.attention.query,   &shape.attention.key,   &shape.attention.value,  &shape.attention.output,
      &shape.feed_forward.gate, &shape.feed_forward.up, &shape.feed_forward.down};
  const Result<files::HfFolder> folder = folder_of(base);
  if (!folder) return folder.error();
  TunedLayer::Modules modules;
  for (const std::string& name : lora.modules) {
    const auto* const known = std::ranges::find(kKnown, name, &KnownModule::name);
    if (known == kKnown.end()) {
      std::vector<std::string_view> names;
      for (const KnownModule& each : kKnown) names.push_back(each.name);
      return Error{
          ErrorCode::kUnsupported, fmt::format("LoRA is not trained beside '{}', but beside {}", name, fmt::join(names, ", ")), {}};
    }
    const auto index = static_cast<std::size_t>(known - kKnown.begin());
    modules[index].name = fmt::format("model.layers.{}.{}", base.shape.layers.size() - 1, known->path);
    modules[index].is_tuned = true;
    if (const Result<void> placed = place_module(*folder, *linears[index], modules[index]); !placed) return placed.error();
  }
  auto layer = freeze_last_layer(base.shape, decoder, table);
  if (!layer) return layer.error();
  return std::shared_ptr<TunableLayer>(std::make_shared<TunedLayer>(std::move(*layer), lora, std::move(modules)));
}

}  // namespace braid::model
