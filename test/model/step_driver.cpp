#include <model/step_driver.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace braid::model::test {

StepDriver::StepDriver(LanguageModel& model, std::int32_t blocks) : model_(model), free_(static_cast<std::size_t>(blocks)) {
  std::iota(free_.begin(), free_.end(), 0);
}

std::vector<DrivenAnswer> StepDriver::run(const std::vector<DrivenRequest>& requests, const Schedule& schedule) {
  random_.seed(schedule.seed);
  slice_ = schedule.slice;
  std::ranges::shuffle(free_, random_);
  std::vector<DrivenAnswer> answers(requests.size());
  std::vector<std::size_t> waiting(requests.size());
  std::iota(waiting.rbegin(), waiting.rend(), std::size_t{0});
  if (schedule.shuffle) std::ranges::shuffle(waiting, random_);
  std::vector<SlotId> slots(schedule.at_once);
  std::iota(slots.begin(), slots.end(), SlotId{0});

  std::vector<Sequence> running;
  while (!waiting.empty() || !running.empty()) {
    for (; !waiting.empty() && !slots.empty(); waiting.pop_back(), slots.pop_back())
      running.push_back({.request = waiting.back(), .slot = slots.back(), .known = requests[waiting.back()].prompt, .blocks = {}});
    if (schedule.shuffle) std::ranges::shuffle(running, random_);
    plan_.clear();
    plan_.id += 1;
    for (Sequence& sequence : running)
      add_row(sequence, requests[sequence.request], static_cast<std::int32_t>(answers[sequence.request].tokens.size()));
    model_.execute(plan_, result_);
    if (result_.failure) std::rethrow_exception(result_.failure);
    EXPECT_EQ(result_.rows.size(), plan_.rows.size());

    std::vector<Sequence> going_on;
    for (std::size_t i = 0; i < running.size(); ++i) {
      Sequence& sequence = running[i];
      DrivenAnswer& answer = answers[sequence.request];
      if (apply(result_.rows[i], answer)) {
        slots.push_back(sequence.slot);
        release(sequence);
        continue;
      }
      if (std::uniform_real_distribution<double>(0.0, 1.0)(random_) < schedule.preempt)
        preempt(sequence, requests[sequence.request], answer);
      going_on.push_back(std::move(sequence));
    }
    running = std::move(going_on);
  }
  return answers;
}

void StepDriver::add_row(Sequence& sequence, const DrivenRequest& request, std::int32_t generated) {
  if (!sequence.started) plan_.starts.push_back({sequence.slot, request.sampling, request.stop, generated});
  sequence.started = true;
  StepRow row{.slot = sequence.slot, .position = sequence.computed};
  const auto left = static_cast<std::int32_t>(sequence.known.size()) - sequence.computed;
  row.from_sampler = left <= 0;
  row.count = row.from_sampler ? 1 : slice_ > 0 ? std::min(left, std::uniform_int_distribution<std::int32_t>(1, slice_)(random_)) : left;
  row.sample = row.from_sampler || row.count == left;
  row.token_begin = static_cast<std::uint32_t>(plan_.tokens.size());
  if (!row.from_sampler)
    plan_.tokens.insert(plan_.tokens.end(), sequence.known.begin() + row.position, sequence.known.begin() + row.position + row.count);
  const std::int32_t block_tokens = model_.kv_layout().block_tokens;
  while (static_cast<std::int32_t>(sequence.blocks.size()) * block_tokens < row.position + row.count) {
    sequence.blocks.push_back(free_.back());
    free_.pop_back();
  }
  const Visibility::Blocks invisible = model_.visibility().invisible(row.position, block_tokens);
  for (std::int32_t b = invisible.first; b < invisible.last; ++b) free_block(sequence.blocks[static_cast<std::size_t>(b)]);
  row.block_begin = static_cast<std::uint32_t>(plan_.blocks.size());
  row.block_count = static_cast<std::uint32_t>(sequence.blocks.size());
  plan_.blocks.insert(plan_.blocks.end(), sequence.blocks.begin(), sequence.blocks.end());
  plan_.rows.push_back(row);
  sequence.computed += row.count;
}

// True when the sequence is complete.
bool StepDriver::apply(const RowResult& row, DrivenAnswer& answer) const {
  EXPECT_TRUE(row.ran);
  if (!row.sampled) return false;
  answer.tokens.push_back(row.token);
  answer.logprobs.push_back(row.logprob);
  const auto top = result_.top.begin() + row.top_begin;
  answer.top.insert(answer.top.end(), top, top + row.top_count);
  answer.reason = row.reason;
  return row.finished;
}

void StepDriver::preempt(Sequence& sequence, const DrivenRequest& request, const DrivenAnswer& answer) {
  release(sequence);
  sequence.known = request.prompt;
  sequence.known.insert(sequence.known.end(), answer.tokens.begin(), answer.tokens.end());
  sequence.computed = 0;
  sequence.started = false;
}

void StepDriver::release(Sequence& sequence) {
  for (std::int32_t& block : sequence.blocks) free_block(block);
  sequence.blocks.clear();
}

void StepDriver::free_block(std::int32_t& block) {
  if (block >= 0) free_.insert(free_.begin(), block);
  block = -1;
}

}  // namespace braid::model::test
