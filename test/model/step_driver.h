// A stand-in for the scheduler: turns requests into step plans and collects the answers, under different schedules.
#pragma once

#include "model/language_model.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

namespace braid::model::test {

struct DrivenRequest {
  std::vector<TokenId> prompt;
  SamplingParams sampling;
  StopRules stop;
  std::int32_t prompt_logprobs = -1;
  std::shared_ptr<const Constraint> constraint = {};
  std::vector<MediaSpan> media = {};
  std::vector<MediaGrid> media_grids = {};
  bool media_whole = false;  // no slice ends within a span
  MediaVectors media_vectors = {};
  Pooling pooling = Pooling::kNone;  // other than kNone: the answer is a vector
  PooledOutput pooled_output = PooledOutput::kVector;
  std::uint32_t adapter = 0;  // StepRow::adapter
};

struct DrivenAnswer {
  std::vector<TokenId> tokens;
  std::vector<float> logprobs;
  std::vector<TokenLogprob> top;
  std::vector<step::ScoredToken> scored;  // of the prompt's tokens from the second on, where asked for
  std::vector<TokenLogprob> scored_top;   // [scored, prompt_logprobs]
  std::vector<float> vector;
  FinishReason reason = FinishReason::kError;
};

template <class T>
bool same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

inline void expect_same(const std::vector<DrivenAnswer>& a, const std::vector<DrivenAnswer>& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].tokens, b[i].tokens) << what << ", request " << i;
    EXPECT_TRUE(same_bytes(a[i].logprobs, b[i].logprobs)) << what << ", request " << i;
    EXPECT_TRUE(same_bytes(a[i].top, b[i].top)) << what << ", request " << i;
    EXPECT_EQ(a[i].reason, b[i].reason) << what << ", request " << i;
    EXPECT_TRUE(same_bytes(a[i].scored, b[i].scored)) << what << ", request " << i;
    EXPECT_TRUE(same_bytes(a[i].scored_top, b[i].scored_top)) << what << ", request " << i;
  }
}

struct Schedule {
  std::size_t at_once = 1;  // sequences that run together
  bool shuffle = false;     // order of admission and of the rows in a step
  std::int32_t slice = 0;   // prefill at most this many tokens of a sequence in a step, at random; 0: the whole prompt
  double preempt = 0.0;     // chance, in each step, that a sequence starts over by recompute, or from the last snapshot of its state
  std::uint32_t seed = 1;
};

class StepDriver {
 public:
  // The model has its pool; blocks are handed out in a random order.
  StepDriver(LanguageModel& model, std::int32_t blocks);

  std::vector<DrivenAnswer> run(const std::vector<DrivenRequest>& requests, const Schedule& schedule);

 private:
  struct Sequence {
    std::size_t request = 0;
    step::SlotId slot = 0;
    std::vector<TokenId> known;  // prompt, and after a preemption what was generated
    std::int32_t computed = 0;   // positions in the pool
    bool started = false;
    float mirostat_mu = 0.0F;
    std::vector<std::vector<std::int32_t>> blocks;  // of each group; -1: given up, because no later token sees it
    std::vector<std::int32_t> state = {};           // of a recurrent model
    std::vector<std::int32_t> snapshot = {};        // and its state after so many positions
    std::int32_t snapshot_end = 0;
    bool restores = false;   // its next row goes on from the snapshot
    bool stretched = false;  // StepRow::stretched
  };

  void add_start(Sequence& sequence, const DrivenRequest& request, std::int32_t generated);
  void add_row(Sequence& sequence, const DrivenRequest& request, std::int32_t generated);
  void add_given(const DrivenRequest& request, step::StepRow& row);
  static std::int32_t whole_spans(const DrivenRequest& request, std::int32_t begin, std::int32_t count);
  void add_state(Sequence& sequence, step::StepRow& row);
  void take_blocks(std::vector<std::int32_t>& blocks, std::int32_t count);
  bool apply(Sequence& sequence, const step::StepRow& planned, const step::RowResult& row, const DrivenRequest& request,
             DrivenAnswer& answer) const;
  void apply_scored(const step::StepRow& planned, const step::RowResult& row, const DrivenRequest& request, DrivenAnswer& answer) const;
  // Whether its next row makes it longer than the model's short angles are for.
  bool outgrows(const Sequence& sequence) const;
  void preempt(Sequence& sequence, const DrivenRequest& request, const DrivenAnswer& answer);
  void free_blocks(Sequence& sequence);
  void free_block(std::int32_t& block);

  LanguageModel& model_;
  std::vector<std::int32_t> free_;
  std::mt19937 random_;
  std::int32_t slice_ = 0;
  step::StepPlan plan_;
  step::StepResult result_;
};

}  // namespace braid::model::test
