#include "perf/model/forward_run.h"

#include <numeric>
#include <utility>

namespace braid::perf {

using namespace model;

Result<std::unique_ptr<ForwardRun>> ForwardRun::create(const ModelShape& model, const Weights& weights, const kernels::KernelTable& table,
                                                       kernels::ThreadTeam& team, kernels::KvType kv_type, std::int32_t context) {
  const KvLayout layout = model.kv_layout(16, kv_type);
  auto kv = KvArena::create(layout, (context + layout.block_tokens - 1) / layout.block_tokens);
  if (!kv) return kv.error();
  auto space = Workspace::create(model, weights, table, {.rows = kRows, .logit_rows = kRows, .members = team.size()});
  if (!space) return space.error();
  return std::unique_ptr<ForwardRun>(new ForwardRun(model, weights, table, team, context, std::move(*kv), std::move(*space)));
}

ForwardRun::ForwardRun(const ModelShape& model, const Weights& weights, const kernels::KernelTable& table, kernels::ThreadTeam& team,
                       std::int32_t context, KvArena kv, Workspace space)
    : ropes_(rope_tables(model, weights.rope_divisors, weights.stretched_divisors, context)),
      transformer_(model, weights, ropes_, table, team), kv_(std::move(kv)), space_(std::move(space)) {
  pass_.blocks.resize(static_cast<std::size_t>(kv_.blocks()));
  std::iota(pass_.blocks.begin(), pass_.blocks.end(), 0);
}

void ForwardRun::forward(std::span<const TokenId> tokens, std::int32_t position) {
  pass_.tokens.clear();
  for (const TokenId token : tokens)
    pass_.tokens.push_back(
        {token, position + static_cast<std::int32_t>(pass_.tokens.size()), 0, static_cast<std::uint32_t>(pass_.blocks.size())});
  pass_.picked.resize(pass_.tokens.size());
  std::iota(pass_.picked.begin(), pass_.picked.end(), 0);
  transformer_.forward(pass_, kv_, space_);
}

model::Rows ForwardRun::logits() {
  transformer_.logits(0, static_cast<std::int64_t>(pass_.tokens.size()), space_);
  return space_.logits;
}

}  // namespace braid::perf
