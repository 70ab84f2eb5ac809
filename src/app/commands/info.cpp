#include "app/commands/commands.h"
#include "app/commands/info_vectors.h"
#include "app/loaded_model.h"
#include "app/units.h"
#include "braid/printable.h"
#include "files/gguf_tensor_type.h"
#include "kernels/kv_type.h"
#include "model/expert_use.h"
#include "model/families/families.h"
#include "model/weights.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

namespace braid::app {
namespace {

constexpr std::size_t kLongestText = 80;

// One line, however long the text is.
std::string shorten(const std::string& text) {
  std::string line;
  for (const char c : text.substr(0, kLongestText)) line += c == '\n' ? "\\n" : std::string(1, c);
  line = printable(line);
  return text.size() > kLongestText ? fmt::format("{}... ({} characters)", line, text.size()) : line;
}

std::string describe(const files::GgufValue& value) {
  return std::visit(
      [](const auto& item) -> std::string {
        using Item = std::decay_t<decltype(item)>;
        if constexpr (std::is_same_v<Item, std::string>)
          return shorten(item);
        else if constexpr (std::is_same_v<Item, files::GgufArray>)
          return std::visit([](const auto& items) { return fmt::format("[{} items]", items.size()); }, item.items);
        else
          return fmt::format("{}", item);
      },
      value);
}

// As a file would have it.
std::uint64_t bytes_of(const files::GgufTensor& tensor) {
  if (!tensor.coded) return tensor.bytes.size();
  const auto* format = kernels::weight_format(static_cast<kernels::WeightType>(tensor.type));
  return static_cast<std::uint64_t>(tensor.coded->rows()) * kernels::stored_row_bytes(*format, tensor.shape.front());
}

struct TypeTotal {
  std::int64_t tensors = 0;
  std::int64_t values = 0;
  std::uint64_t bytes = 0;
};

void print_tensors(const files::GgufFile& file) {
  std::map<std::string, TypeTotal> totals;
  for (const files::GgufTensor& tensor : file.tensors()) {
    TypeTotal& total = totals[files::gguf_tensor_type(tensor.type)->name];
    std::int64_t values = 1;
    for (const std::int64_t extent : tensor.shape) values *= extent;
    ++total.tensors;
    total.values += values;
    total.bytes += bytes_of(tensor);
  }
  fmt::print("\nTensors\n");
  for (const auto& [type, total] : totals)
    fmt::print("  {:8} {:5} tensors {:>14} values {:>10}\n", type, total.tensors, total.values, format_size(total.bytes));
}

// Of each kind of layers with experts what a token reads.
Result<void> print_experts(const files::GgufFile& file) {
  const auto shape = model::describe_model(file);
  if (!shape) return shape.error();
  const std::vector<model::ExpertUse> uses = model::expert_use(*shape, file);
  if (uses.empty()) return {};
  fmt::print("\nExperts\n");
  std::uint64_t unread = 0;
  for (const model::ExpertUse& use : uses) {
    fmt::print("  {} layers of {} experts of {} ({}), of which a token reads {}", use.layers, use.experts, format_size(use.expert_bytes),
               use.types, use.chosen);
    if (use.shared_bytes > 0) fmt::print(", and {} shared by all", format_size(use.shared_bytes));
    fmt::print(": {} of {}\n", format_size(static_cast<std::uint64_t>(use.layers) * use.read_bytes()),
               format_size(static_cast<std::uint64_t>(use.layers) * use.all_bytes()));
    unread += static_cast<std::uint64_t>(use.layers) * (use.all_bytes() - use.read_bytes());
  }
  std::uint64_t all = 0;
  for (const files::GgufTensor& tensor : file.tensors()) all += bytes_of(tensor);
  const files::GgufTensor* embedding = file.tensor("token_embd.weight");
  if (embedding != nullptr && file.tensor("output.weight") != nullptr) unread += bytes_of(*embedding);  // but for one row
  fmt::print("  with all else a token reads {} of {}\n", format_size(all - std::min(all, unread)), format_size(all));
  return {};
}

// What `braid serve` would take with these options, after all the checks of loading.
Result<void> print_memory(const files::GgufFile& file, const ModelReportOptions& options) {
  const auto table = choose_kernels(options.model, model::has_float_weights(file, {options.model.float_type, options.model.fast_weights}));
  if (!table) return table.error();
  const model::LoadOptions load = load_options(options.model, options.max_batch);
  const auto estimate = model::estimate_memory(file, **table, load);
  if (!estimate) return estimate.error();
  const auto dimensions = model::describe_model(file);
  if (!dimensions) return dimensions.error();
  const Result<MemoryLeft> left = memory_left();
  if (!left) return left.error();

  KvDemand demand;
  const auto bytes =
      kv_memory({left->bytes - std::min(left->bytes, estimate->weights + estimate->workspace), left->bound}, options.model.kv_memory);
  if (!bytes) return bytes.error();
  demand.bytes = *bytes;
  demand.block_bytes = estimate->kv_block;
  demand.block_tokens = options.model.block_size;
  demand.groups = estimate->kv_groups;
  demand.state_blocks = estimate->state_blocks;
  demand.max_batch = options.max_batch;
  demand.model_context = dimensions->context_length;
  demand.asked_context = options.model.context;
  const auto kv = plan_kv(demand);
  if (!kv) return kv.error();

  fmt::print("\nMemory with {} kernels, {} threads and at most {} sequences in a step\n", (*table)->name, load.threads, options.max_batch);
  fmt::print("  weights    {:>10}\n", format_size(estimate->weights));
  fmt::print("  workspace  {:>10}\n", format_size(estimate->workspace));
  fmt::print("  KV pool    {:>10}  {} blocks of {} tokens, {} a token in {}; context {}\n", format_size(kv->bytes), kv->blocks,
             options.model.block_size,
             format_size(estimate->kv_block * estimate->kv_groups.size() / static_cast<std::uint64_t>(options.model.block_size)),
             kernels::kv_type_name(options.model.kv_type.value_or((*table)->kv_type)), kv->context);
  fmt::print("  together   {:>10}  of the {} that {} leaves\n", format_size(estimate->weights + estimate->workspace + kv->bytes),
             format_size(left->bytes), left->bound);
  return {};
}

}  // namespace

int run_command(const ModelReportOptions& options) {
  if (reports_vectors(options)) {
    const Result<void> printed = print_vectors(options);
    return printed ? EXIT_SUCCESS : report(printed.error());
  }
  const auto file = open_model(options.model.model);
  if (!file) return report(file.error());
  const std::string kind = file->version() == 0 ? "a Hugging Face folder" : fmt::format("GGUF version {}", file->version());
  fmt::print("{}: {}, {}\n\nMetadata\n", printable(file->name()), kind, format_size(file->file_bytes()));
  for (const auto& [key, value] : file->metadata()) fmt::print("  {:44} {}\n", printable(key), describe(value));
  print_tensors(*file);
  if (const auto printed = print_experts(*file); !printed) return report(printed.error());
  if (const auto printed = print_memory(*file, options); !printed) return report(printed.error());
  return EXIT_SUCCESS;
}

}  // namespace braid::app
