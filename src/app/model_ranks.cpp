#include "app/model_ranks.h"

#include "app/embedded_model.h"
#include "app/host_list.h"
#include "kernels/memory_nodes.h"
#include "model/families/families.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <string>
#include <utility>

namespace braid::app {
namespace {

// Beside this server's own program.
std::string rank_program() {
  std::error_code error;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "braid-rank" : (own.parent_path() / "braid-rank").string();
}

}  // namespace

Result<void> check_division(const model::ModelShape& shape, const RankOptions& options) {
  const std::int32_t ranks = options.count / options.stages;
  if (std::cmp_greater(options.stages, shape.layers.size()))
    return invalid_argument(fmt::format("--stages {}: the model has {} layers", options.stages, shape.layers.size()));
  if (options.stages > 1 && shape.is_recurrent())
    return invalid_argument("--stages: a model with recurrent layers is divided among --ranks only");
  const bool shares = std::ranges::any_of(shape.layers, [](const model::LayerShape& layer) { return !layer.attention.stores(); });
  if (options.stages > 1 && (shape.streams || shape.layer_inputs || shares))
    return invalid_argument("--stages: a model whose layers share keys and values, or inputs, is divided among --ranks only");
  for (const model::LayerShape& layer : shape.layers) {
    if (!layer.attends() || layer.attention.latent) continue;
    const std::int32_t heads = layer.attention.kv_heads;
    if (heads < ranks || heads % ranks == 0) continue;
    std::string possible;
    for (std::int32_t count = 1; count <= heads; ++count)
      if (heads % count == 0) possible += fmt::format("{}{}", possible.empty() ? "" : ", ", count);
    return invalid_argument(fmt::format("--ranks {}: {} heads of keys and values cannot be divided so; {} ranks{} can have them",
                                        options.count, heads, possible, options.stages > 1 ? " of a stage" : ""));
  }
  return {};
}

Result<StartedRanks> start_ranks(const ModelOptions& options, const files::GgufFile& file, const kernels::KernelTable& table,
                                 bool saves_blocks, model::LoadOptions& load) {
  if (options.model.empty() || options.model == kEmbeddedModelName)
    return invalid_argument("--ranks: name a model file or folder that each rank can read; the embedded one is this program's alone");
  const auto shape = model::describe_model(file);
  if (!shape) return shape.error();
  if (const Result<void> divided = check_division(*shape, options.ranks); !divided) return divided.error();
  load.packing.share = options.ranks.share();
  load.packing.stage = options.ranks.stage();
  const ranks::Setup setup{.model = std::filesystem::absolute(options.model).string(),
                           .isa = options.isa ? static_cast<std::int32_t>(*options.isa) : -1,
                           .float_weights = model::has_float_weights(file, load.packing) ? 1 : 0,
                           .kv_type = static_cast<std::int32_t>(load.kv_type.value_or(table.kv_type)),
                           .float_type = load.packing.float_type ? static_cast<std::int32_t>(*load.packing.float_type) : -1,
                           .rotated = load.packing.rotated ? 1 : 0,
                           .context = load.context_length > 0 ? load.context_length : shape->context_length,
                           .block_tokens = load.block_tokens,
                           .kv_limit = load.kv_limit,
                           .pass_rows = load.pass_rows,
                           .logit_rows = model::logit_rows_at_once(shape->vocab, load.pass_rows),
                           .threads = std::max(1, options.ranks.hostfile.empty() ? load.threads / options.ranks.count : load.threads)};
  const auto kv_type = static_cast<kernels::KvType>(setup.kv_type);
  const auto part = shape->kv_groups(setup.block_tokens, kv_type, load.packing.share);
  auto blocks = options.ranks.stages == 1
                    ? ranks::RankBlocks::of(shape->kv_groups(setup.block_tokens, kv_type), part, options.ranks.count)
                    : Result<ranks::RankBlocks>(Error{ErrorCode::kUnsupported, "no stage has a whole block (--stages)", {}});
  if (!blocks && saves_blocks)
    return Error{blocks.error().code, fmt::format("--kv-disk or --kv-redis with --ranks: {}", blocks.error().message), {}};
  ranks::GroupOptions group{.ranks = options.ranks.count,
                            .stages = options.ranks.stages,
                            .on_nodes = options.ranks.on_nodes,
                            .program = rank_program(),
                            .start_limit = std::min<std::chrono::milliseconds>(std::chrono::seconds(60), 10 * options.ranks.timeout),
                            .load_limit = 10 * options.ranks.timeout,
                            .answer_limit = options.ranks.timeout,
                            .progress = load.progress};
  if (!options.ranks.hostfile.empty()) {
    Result<HostList> hosts = read_hostfile(options.ranks.hostfile);
    if (!hosts) return hosts.error();
    group.hostfile = std::move(hosts->file);
    group.hosts = std::move(hosts->hosts);
  }
  if (options.ranks.are_threads()) group.nodes = kernels::memory_nodes();
  if (!options.ranks.listen.empty()) group.listen = options.ranks.listen;
  auto started = ranks::RankGroup::start(group);
  if (!started) return started.error();
  const Result<ranks::Ready> ready = (*started)->set_up(setup);
  if (!ready) return ready.error();
  if (ready->isa != table.name)
    return Error{ErrorCode::kUnsupported,
                 fmt::format("ranks compute as {}, this machine as {}: give --isa, so that all have the same bits", ready->isa, table.name),
                 {}};
  spdlog::info("{} ranks of {} threads, {} kernels, {:.1f} MiB of weights each", options.ranks.count, setup.threads, ready->isa,
               static_cast<double>(ready->weight_bytes) / (1 << 20));
  auto passes =
      std::make_shared<ranks::RemotePasses>(std::move(*started), shape->vocab, blocks ? std::optional(std::move(*blocks)) : std::nullopt);
  load.passes = passes;
  return StartedRanks{std::move(passes), ready->workspace_bytes};
}

}  // namespace braid::app
