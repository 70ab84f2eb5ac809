#include "app/commands/info_vectors.h"

#include "app/encoder_folder.h"
#include "app/loaded_model.h"
#include "app/network_folder.h"
#include "app/served_models.h"
#include "app/units.h"
#include "braid/printable.h"
#include "kernels/packed_layout.h"
#include "kernels/thread_team.h"

#include <array>
#include <cstddef>
#include <fmt/format.h>
#include <string>
#include <utility>

namespace braid::app {
namespace {

void print_fact(std::string_view name, const std::string& value) { fmt::print("  {:24} {}\n", name, printable(value)); }

std::string shape_of(const SymbolicShape& shape) {
  std::string text;
  for (const Extent& extent : shape)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", extent.size >= 0 ? fmt::format("{}", extent.size) : extent.name);
  return "[" + text + "]";
}

std::string pooling_name(Pooling pooling) {
  constexpr std::array<const char*, 5> kNames = {"nothing", "the last token", "the mean of all tokens", "the first token", "every token"};
  return kNames[static_cast<std::size_t>(pooling)];
}

template <typename List, typename Name>
std::string joined(const List& list, Name name) {
  std::string text;
  for (const auto& item : list) text += (text.empty() ? "" : ", ") + name(item);
  return text;
}

Result<void> print_encoder(const ModelReportOptions& options) {
  ServedModelOptions served;
  served.model = options.model;
  served.id = model_id(options.model.model);
  kernels::ThreadTeam team(1);
  const Result<LoadedEncoder> loaded = load_encoder(served, team);
  if (!loaded) return loaded.error();
  const model::EncoderShape& shape = loaded->encoder->shape();
  const model::EncoderWeights& weights = loaded->encoder->weights();
  fmt::print("{}: reads whole texts\n\nModel\n", printable(options.model.model));
  print_fact("family", shape.family);
  print_fact("parameters", fmt::format("{}", weights.parameters));
  print_fact("layers", fmt::format("{} of {} heads of {}", shape.layers.size(), shape.heads, shape.head_dim));
  print_fact("longest text", fmt::format("{} tokens", loaded->context));
  print_fact("vectors", fmt::format("{} numbers, of {}{}", loaded->vectors.width, pooling_name(loaded->pooling),
                                    loaded->vectors.unit_length ? ", of length 1" : ""));
  const auto same = [](const std::string& text) { return text; };
  if (!loaded->vectors.dimensions.empty())
    print_fact("cut to", joined(loaded->vectors.dimensions, [](std::int64_t size) { return fmt::format("{}", size); }));
  if (!loaded->vectors.prompts.empty())
    print_fact("prompts", joined(loaded->vectors.prompts, [](const auto& prompt) { return prompt.first; }));
  if (!loaded->vectors.tasks.empty()) print_fact("tasks", joined(loaded->vectors.tasks, same));
  if (loaded->classes) print_fact("classes", joined(loaded->classes.labels, same));
  fmt::print("\nMemory with {} kernels\n  weights    {:>10}\n", loaded->encoder->table().name, format_size(weights.bytes));
  return {};
}

Result<void> print_network(const ModelReportOptions& options) {
  const auto type = options.model.float_type.value_or(kernels::WeightType::kF32);
  const Result<const kernels::KernelTable*> table = choose_kernels(options.model, !kernels::is_quantized(type));
  if (!table) return table.error();
  const Result<LoadedNetwork> loaded = load_network(options.model.model, model_id(options.model.model), **table, type);
  if (!loaded) return loaded.error();
  const model::NetworkShape& shape = loaded->first.network->shape();
  fmt::print("{}: a small network\n\nModel\n", printable(options.model.model));
  print_fact("parameters", fmt::format("{}", loaded->parameters));
  print_fact("layers", fmt::format("{}", shape.layers.size()));
  print_fact("revision", loaded->first.digest);
  fmt::print("\nInputs\n");
  for (const TensorSignature& input : shape.inputs)
    print_fact(input.name, fmt::format("{} {}{}", element_name(input.type), shape_of(input.shape), input.optional ? ", optional" : ""));
  fmt::print("\nOutputs\n");
  for (const model::NetworkOutput& output : shape.outputs) {
    const model::ValueShape& value = loaded->first.network->value_shape(output.value);
    print_fact(output.name, fmt::format("{} {}", element_name(value.type), shape_of(value.shape)));
  }
  std::uint64_t bytes = 0;
  for (const model::LayerTensors& layer : loaded->first.network->tensors()) {
    for (const model::LayerMatrix& matrix : layer.matrices) bytes += matrix.storage.size() + matrix.bias.size() * sizeof(float);
    bytes += (layer.scale.size() + layer.shift.size() + layer.table.size()) * sizeof(float);
  }
  fmt::print("\nMemory with {} kernels\n  weights    {:>10}\n", (*table)->name, format_size(bytes));
  return {};
}

}  // namespace

bool reports_vectors(const ModelReportOptions& options) {
  return !options.model.model.empty() && (holds_network(options.model.model) || holds_encoder(options.model.model));
}

Result<void> print_vectors(const ModelReportOptions& options) {
  return holds_network(options.model.model) ? print_network(options) : print_encoder(options);
}

}  // namespace braid::app
