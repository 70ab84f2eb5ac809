// Answers of a model by rows that verify guesses, step by step.
#pragma once

#include "files/gguf.h"
#include "kernels/select.h"
#include "model/language_model.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <utility>
#include <vector>

namespace braid::model::test {

inline constexpr std::int32_t kTokens = 40;
inline const std::vector<TokenId> kPrompt = {1, 314, 206, 1454, 8, 2, 206, 1, 319, 206};

struct Said {
  std::vector<TokenId> tokens;
  std::vector<float> logprobs;
  std::vector<float> top;
  int steps = 0;
  int drafted = 0;

  bool operator==(const Said& other) const { return tokens == other.tokens && logprobs == other.logprobs && top == other.top; }
};

inline std::unique_ptr<LanguageModel> load_from(const files::GgufFile& file, LoadOptions options) {
  options.max_batch = 4;
  auto model = LanguageModel::load(file, kernels::best_kernel_table(), std::move(options)).value();
  model->allocate_kv(4 * model->kv_groups().count() + 2 * model->kv_groups().states.blocks() + 4).value();
  return model;
}

class VerifiedRows : public testing::Test {
 protected:
  static std::unique_ptr<LanguageModel> load(LoadOptions options) {
    static const files::GgufFile file = files::GgufFile::open(BRAID_SOURCE_DIR "/models/demo-draft-q8_0.gguf").value();
    return load_from(file, std::move(options));
  }

  // By rows that verify up to `drafts` tokens; 0: by plain ones. A recurrent model's state is copied behind each.
  static Said answer(LanguageModel& model, const SamplingParams& sampling, std::int32_t drafts, DraftMethod method = DraftMethod::kDraft,
                     const std::function<void()>* between_layers = nullptr) {
    Said said;
    step::StepPlan plan;
    plan.between_layers = between_layers;
    step::StepResult result;
    const std::int32_t state_blocks = model.kv_groups().states.blocks();
    const auto states = static_cast<std::uint32_t>(4 * model.kv_groups().count());
    for (std::uint32_t i = 0; i < states + 2 * static_cast<std::uint32_t>(state_blocks); ++i)
      plan.blocks.push_back(static_cast<std::int32_t>(i ^ 1U));  // not in order
    plan.tokens = kPrompt;
    for (TokenId& token : plan.tokens) token %= model.shape().vocab;
    plan.starts = {{.slot = 1, .sampling = sampling, .stop = {.max_tokens = kTokens, .ignore_eos = true, .stop_token_ids = {}}}};
    if (drafts > 0) plan.starts[0].speculation.method = method;
    plan.starts[0].history_count = step::needs_history(plan.starts[0]) ? static_cast<std::uint32_t>(kPrompt.size()) : 0;
    plan.rows = {{.slot = 1,
                  .count = static_cast<std::int32_t>(kPrompt.size()),
                  .block_count = 4,
                  .output = step::RowOutput::kSample,
                  .state_begin = states}};
    auto least = static_cast<std::int32_t>(kPrompt.size());
    for (bool finished = false; !finished;) {
      model.execute(plan, result);
      if (result.failure) std::rethrow_exception(result.failure);
      const step::RowResult row = result.rows.at(0);
      EXPECT_TRUE(row.sampled);
      ++said.steps;
      said.drafted += row.drafted;
      add(said, row, result);
      for (std::uint32_t i = 0; i < row.more_count; ++i) add(said, result.more.at(row.more_begin + i), result);
      finished = row.finished;
      if (plan.rows[0].output == step::RowOutput::kVerify) least = row.position + 1 + static_cast<std::int32_t>(row.more_count);
      EXPECT_EQ(least, static_cast<std::int32_t>(kPrompt.size() + said.tokens.size()) - 1);
      plan.starts.clear();
      // The scheduler knows the least position only, of the step before.
      const std::int32_t slack = drafts > 0 ? std::min(least - static_cast<std::int32_t>(kPrompt.size()), drafts) : 0;
      plan.rows = {{.slot = 1,
                    .position = least - slack,
                    .block_count = 4,
                    .input = step::RowInput::kSampled,
                    .output = drafts > 0 ? step::RowOutput::kVerify : step::RowOutput::kSample,
                    .slack = slack,
                    .drafts = drafts,
                    .state_begin = states}};
      if (drafts == 0) ++least;
      if (state_blocks == 0 || drafts == 0) continue;
      plan.snapshots = {{step::kBehindRow, states + static_cast<std::uint32_t>(state_blocks)}};
      plan.rows[0].snapshot_count = 1;
    }
    if (drafts > 0)
      for (std::int32_t part = 0; part < state_blocks; ++part) {
        const auto own = states + static_cast<std::uint32_t>(part);
        EXPECT_EQ(saved(model, plan.blocks[own], part), saved(model, plan.blocks[own + static_cast<std::uint32_t>(state_blocks)], part));
      }
    return said;
  }

  // What a block holds as part of a state.
  static std::vector<std::byte> saved(LanguageModel& model, std::int32_t block, std::int32_t part) {
    std::vector<std::byte> bytes(model.kv_groups().block_bytes());
    step::StepPlan plan;
    step::StepResult result;
    plan.saves = {{block, bytes.data(), step::kStateGroup, part}};
    model.execute(plan, result);
    return bytes;
  }

 private:
  template <class Answered>
  static void add(Said& said, const Answered& answered, const step::StepResult& result) {
    said.tokens.push_back(answered.token);
    said.logprobs.push_back(answered.logprob);
    for (std::uint32_t i = 0; i < answered.top_count; ++i) said.top.push_back(result.top.at(answered.top_begin + i).logprob);
  }
};

}  // namespace braid::model::test
