// What each way to divide a model among machines takes.
#include "app/commands/commands.h"
#include "app/loaded_model.h"
#include "app/model_ranks.h"
#include "app/units.h"
#include "model/exchange_cost.h"
#include "model/expert_use.h"
#include "model/families/families.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <fmt/format.h>
#include <optional>

namespace braid::app {
namespace {

constexpr std::int32_t kPlannedBatch = 256;  // --max-batch of braid serve

// One rank of each.
struct Layout {
  std::uint64_t weights = 0;
  std::uint64_t workspace = 0;
  std::uint64_t kv = 0;  // of a sequence of the whole context
  double compute = 0.0;  // seconds for a token, of all stages
  double exchange = 0.0;
};

// The share of the weights that a token reads: of experts those that are chosen.
double share_read(const model::ModelShape& shape, const files::GgufFile& file) {
  double all = 0.0, read = 0.0;
  for (const files::GgufTensor& tensor : file.tensors()) all += static_cast<double>(tensor.bytes.size());
  read = all;
  for (const model::ExpertUse& use : model::expert_use(shape, file))
    read -= static_cast<double>(use.layers) * static_cast<double>(use.all_bytes() - use.read_bytes());
  return all > 0.0 ? read / all : 1.0;
}

// A token passes each of its stages, whose ranks read their weights at the same time; each exchange takes so many steps that all have heard
// of all, and a rank sends its part to the others. The server says what to compute, and hears what came of it, twice.
void add_times(const PlanOptions& options, const model::ModelShape& shape, double read, const RankOptions& ranks, Layout& layout) {
  const double latency = options.latency_us * 1e-6;
  const auto floats_in = [&](std::int64_t floats) {
    return static_cast<double>(floats) * sizeof(float) / static_cast<double>(options.bandwidth);
  };
  layout.compute = static_cast<double>(layout.weights) * ranks.stages * read / static_cast<double>(options.memory_bandwidth);
  if (ranks.count == 1) return;
  const model::Share share = ranks.share();
  const model::ExchangeCost cost = model::exchange_cost(shape, share);
  const auto steps = static_cast<double>(std::bit_width(static_cast<std::uint32_t>(share.ranks - 1)));
  const double others = static_cast<double>(share.ranks - 1) / share.ranks;
  layout.exchange = static_cast<double>(cost.exchanges) * steps * latency + floats_in(cost.floats) * others +
                    (ranks.stages - 1) * (latency + floats_in(shape.embedding)) + 4 * latency + floats_in(shape.vocab);
}

Result<Layout> layout_of(const PlanOptions& options, const files::GgufFile& file, const model::ModelShape& shape,
                         const RankOptions& ranks) {
  const auto table = choose_kernels(options.model, model::has_float_weights(file, {options.model.float_type, options.model.fast_weights}));
  if (!table) return table.error();
  model::LoadOptions load = load_options(options.model, kPlannedBatch);
  load.packing.share = ranks.share();
  load.packing.stage = ranks.stage();
  const auto estimate = model::estimate_memory(file, **table, load);
  if (!estimate) return estimate.error();
  const auto blocks = static_cast<std::uint64_t>((estimate->context + options.model.block_size - 1) / options.model.block_size);
  Layout layout{.weights = estimate->weights,
                .workspace = estimate->workspace,
                .kv = estimate->kv_block * (blocks * estimate->kv_groups.size() + static_cast<std::uint64_t>(estimate->state_blocks))};
  add_times(options, shape, share_read(shape, file), ranks, layout);
  return layout;
}

std::string name_of(const RankOptions& ranks) {
  if (ranks.count == 1) return "one process";
  return fmt::format("--ranks {}{}", ranks.count, ranks.stages > 1 ? fmt::format(" --stages {}", ranks.stages) : "");
}

}  // namespace

int run_command(const PlanOptions& options) {
  const auto file = open_model(options.model.model);
  if (!file) return report(file.error());
  const auto shape = model::describe_model(*file);
  if (!shape) return report(shape.error());
  fmt::print("One rank for each machine; a token of one answer, {} from memory and {} over the network in a second, {} us of latency\n\n",
             format_size(options.memory_bandwidth), format_size(options.bandwidth), options.latency_us);
  fmt::print("{:26} {:>12} {:>12} {:>12} {:>12} {:>10} {:>10}\n", "", "weights", "workspace", "KV, whole", "together", "ms/token",
             "of it net");
  for (std::int32_t count = 1; count <= options.hosts; ++count) {
    for (std::int32_t stages = 1; stages <= count; ++stages) {
      if (count % stages != 0) continue;
      RankOptions ranks;
      ranks.count = count;
      ranks.stages = stages;
      if (!check_division(*shape, ranks)) continue;
      const auto layout = layout_of(options, *file, *shape, ranks);
      if (!layout) return report(layout.error());
      fmt::print("{:26} {:>12} {:>12} {:>12} {:>12} {:>10.2f} {:>10.2f}\n", name_of(ranks), format_size(layout->weights),
                 format_size(layout->workspace), format_size(layout->kv), format_size(layout->weights + layout->workspace + layout->kv),
                 (layout->compute + layout->exchange) * 1e3, layout->exchange * 1e3);
    }
  }
  return EXIT_SUCCESS;
}

}  // namespace braid::app
