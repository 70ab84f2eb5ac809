// Runs a model's forward pass without slots and samplers: logits of every position of a sequence.
#pragma once

#include "files/gguf.h"
#include "kernels/select.h"
#include "model/families/families.h"
#include "model/transformer.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace braid::model::test {

class ForwardHarness {
 public:
  static constexpr std::int32_t kBlock = 16;

  ForwardHarness(const files::GgufFile& file, const kernels::KernelTable& table, const Packing& packing = {},
                 kernels::KvType kv_type = kernels::KvType::kF32)
      : team_(1), model_(describe_model(file).value()),
        weights_(load_weights(file, model_, model_.context_length, table, team_, {}, packing).value()),
        ropes_(rope_tables(model_, weights_.rope_divisors, weights_.stretched_divisors, model_.context_length)),
        transformer_(model_, weights_, ropes_, table, team_),
        space_(Workspace::create(model_, weights_, table, {.rows = 64, .logit_rows = 64, .members = 1}).value()) {
    const KvGroups groups = model_.is_recurrent() || !model_.stores_alike() ? model_.kv_groups(kBlock, kv_type)
                                                                            : KvGroups::one(model_.kv_layout(kBlock, kv_type));
    places_ = static_cast<std::uint32_t>((model_.context_length + kBlock - 1) / kBlock);
    const std::int32_t blocks = static_cast<std::int32_t>(places_) * groups.count() + groups.states.blocks();
    kv_.emplace(KvArena::create(groups, blocks).value());
    blocks_.resize(static_cast<std::size_t>(blocks));
    std::iota(blocks_.rbegin(), blocks_.rend(), 0);  // not in order, to show that the table is followed
  }

  const ModelShape& model() const { return model_; }

  // Logits [ids.size(), vocab] of tokens at positions [position, position + ids.size()).
  std::vector<float> logits(const std::vector<TokenId>& ids, std::int32_t position = 0) {
    std::vector<float> all;
    for (std::size_t begin = 0; begin < ids.size(); begin += 64) {
      const std::size_t count = std::min<std::size_t>(64, ids.size() - begin);
      transformer_.forward(pass_of(std::span(ids).subspan(begin, count), position + static_cast<std::int32_t>(begin)), *kv_, space_);
      append_logits(count, all);
    }
    return all;
  }

  // The same of at most 64 tokens at the beginning, with `between` called between any two layers.
  template <class Between>
  std::vector<float> logits_in_pieces(const std::vector<TokenId>& ids, Between between) {
    const step::Pass pass = pass_of(ids, 0);
    Transformer::PassState state = transformer_.begin(pass, space_);
    while (transformer_.advance(pass, *kv_, space_, state)) between();
    std::vector<float> all;
    append_logits(ids.size(), all);
    return all;
  }

  // All of its tokens are picked.
  step::Pass pass_of(std::span<const TokenId> ids, std::int32_t position) const {
    step::Pass pass;
    pass.blocks = blocks_;
    const std::int32_t beyond = model_.stretch_beyond();
    const bool stretched = beyond > 0 && position + static_cast<std::int32_t>(ids.size()) > beyond;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      pass.tokens.push_back({ids[i], position + static_cast<std::int32_t>(i), 0, places_});
      pass.tokens.back().stretched = stretched;
      pass.picked.push_back(static_cast<std::int32_t>(i));
    }
    const auto state = static_cast<std::uint32_t>(kv_->groups().count()) * places_;
    if (model_.is_recurrent())
      pass.sequences.push_back({.count = static_cast<std::int32_t>(ids.size()), .is_first = position == 0, .state = state});
    return pass;
  }

 private:
  void append_logits(std::size_t count, std::vector<float>& all) {
    transformer_.logits(0, static_cast<std::int64_t>(count), space_);
    for (std::size_t i = 0; i < count; ++i) {
      const float* row = space_.logits[static_cast<std::int64_t>(i)];
      all.insert(all.end(), row, row + model_.vocab);
    }
  }

  kernels::ThreadTeam team_;
  const ModelShape model_;
  const Weights weights_;
  const std::vector<RopeTable> ropes_;
  const Transformer transformer_;
  Workspace space_;
  std::optional<KvArena> kv_;
  std::uint32_t places_ = 0;          // of each group
  std::vector<std::int32_t> blocks_;  // those of the groups, then the state's
};

// Every tier that this machine can run.
inline std::vector<const kernels::KernelTable*> available_tables() {
  std::vector<const kernels::KernelTable*> tables;
  for (const auto isa : {kernels::Isa::kScalar, kernels::Isa::kNeon, kernels::Isa::kAvx2, kernels::Isa::kAvx512, kernels::Isa::kAmx}) {
    std::string missing;
    if (const auto* table = kernels::kernel_table(isa, missing)) tables.push_back(table);
  }
  return tables;
}

// Whether products with BF16 weights take activations of bf16: prepared rows have no room for floats.
inline bool rounds_activations(const kernels::KernelTable& table) {
  return table.prepared_bytes(kernels::WeightType::kBF16, 1024, 1) < 1024 * sizeof(float);
}

}  // namespace braid::model::test
