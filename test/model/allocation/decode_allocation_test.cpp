// A program of its own: it replaces operator new to count what a decode step allocates.
#include "kernels/select.h"
#include "model/language_model.h"
#include "support/operator_delete.h"

#include <atomic>
#include <cstdlib>
#include <gtest/gtest.h>
#include <new>

namespace {

std::atomic<std::int64_t> allocations{0};

void* taken(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(size == 0 ? 1 : size);
}

void* counted(std::size_t size) {
  if (void* memory = taken(size)) return memory;
  throw std::bad_alloc();
}

void* counted(std::size_t size, std::align_val_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  const auto align = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(align, (size + align - 1) / align * align)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void* operator new(std::size_t size, std::align_val_t alignment) { return counted(size, alignment); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return taken(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return taken(size); }
void* operator new[](std::size_t size, std::align_val_t alignment) { return counted(size, alignment); }

namespace braid::model::test {
namespace {

constexpr std::uint32_t kRows = 10;
constexpr std::int32_t kPrompt = 5;

SamplingParams strategy(std::uint32_t row) {
  switch (row % 10) {
    case 0:
      return {.temperature = 0.0F};
    case 1:
      return {.seed = 1, .top_logprobs = 5};
    case 2:
      return {.top_p = 0.9F, .seed = 2, .top_logprobs = 0};
    case 3:
      return {.repetition_penalty = 1.2F, .presence_penalty = 0.2F, .frequency_penalty = 0.2F, .penalty_last_n = 16};
    case 4:
      return {.top_k = 30, .dry_multiplier = 0.8F, .dry_sequence_breakers = {{3}, {4, 5}}};
    case 5:
      return {.typical_p = 0.8F, .top_n_sigma = 1.0F};
    case 6:
      return {.xtc_probability = 0.5F, .xtc_threshold = 0.05F};
    case 7:
      return {.mirostat = 1};
    case 8:
      return {.logit_bias = {{7, 1.0F}}, .mirostat = 2};
    default:
      return {.temperature = 0.8F, .top_p = 0.95F, .min_p = 0.01F, .top_k = 40, .seed = 3};
  }
}

TEST(DecodeStep, AllocatesNothing) {
  const auto file = files::GgufFile::open(BRAID_SOURCE_DIR "/models/demo-draft-q8_0.gguf").value();
  auto model =
      LanguageModel::load(file, kernels::best_kernel_table(), {.threads = 2, .max_batch = kRows, .end_tokens = {2}, .progress = {}})
          .value();
  model->allocate_kv(kRows * 4).value();

  step::StepPlan plan;
  step::StepResult result;
  for (std::uint32_t row = 0; row < kRows; ++row) {
    const auto begin = static_cast<std::uint32_t>(plan.tokens.size());
    plan.starts.push_back({row, strategy(row), {.max_tokens = 1000, .min_tokens = 1000, .stop_token_ids = {}}, 0, begin, kPrompt});
    for (std::int32_t i = 0; i < kPrompt; ++i) plan.tokens.push_back(static_cast<TokenId>(10 + row) + i);
    for (std::int32_t i = 0; i < 4; ++i) plan.blocks.push_back(static_cast<std::int32_t>(row * 4) + i);
    plan.rows.push_back({.slot = row,
                         .count = kPrompt,
                         .token_begin = row * kPrompt,
                         .block_begin = row * 4,
                         .block_count = 4,
                         .output = step::RowOutput::kSample});
  }
  model->execute(plan, result);
  ASSERT_FALSE(result.failure);
  plan.starts.clear();

  for (std::int32_t step = 0; step < 50; ++step) {
    for (step::StepRow& row : plan.rows) {
      row.position = kPrompt + step;
      row.count = 1;
      row.input = step::RowInput::kSampled;
    }
    const std::int64_t before = allocations.load();
    model->execute(plan, result);
    EXPECT_EQ(allocations.load() - before, 0) << "step " << step;
    ASSERT_FALSE(result.failure);
  }
}

}  // namespace
}  // namespace braid::model::test
