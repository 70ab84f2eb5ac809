#include "model/step_driver.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <stdexcept>

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
  std::vector<step::SlotId> slots(schedule.at_once);
  std::iota(slots.begin(), slots.end(), step::SlotId{0});

  std::vector<Sequence> running;
  while (!waiting.empty() || !running.empty()) {
    for (; !waiting.empty() && !slots.empty(); waiting.pop_back(), slots.pop_back())
      running.push_back({.request = waiting.back(), .slot = slots.back(), .known = requests[waiting.back()].prompt, .blocks = {}});
    if (schedule.shuffle) std::ranges::shuffle(running, random_);
    plan_.clear();
    plan_.id += 1;
    for (Sequence& sequence : running) {
      const DrivenAnswer& answer = answers[sequence.request];
      if (outgrows(sequence)) {
        if (sequence.computed > 0) preempt(sequence, requests[sequence.request], answer);
        sequence.stretched = true;
      }
      add_row(sequence, requests[sequence.request], static_cast<std::int32_t>(answer.tokens.size()));
    }
    model_.execute(plan_, result_);
    if (result_.failure) std::rethrow_exception(result_.failure);
    EXPECT_EQ(result_.rows.size(), plan_.rows.size());

    std::vector<Sequence> going_on;
    for (std::size_t i = 0; i < running.size(); ++i) {
      Sequence& sequence = running[i];
      DrivenAnswer& answer = answers[sequence.request];
      if (apply(sequence, plan_.rows[i], result_.rows[i], requests[sequence.request], answer)) {
        slots.push_back(sequence.slot);
        free_blocks(sequence);
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

void StepDriver::add_start(Sequence& sequence, const DrivenRequest& request, std::int32_t generated) {
  step::SlotStart start{.slot = sequence.slot, .sampling = request.sampling, .stop = request.stop, .generated = generated};
  start.mirostat_mu = sequence.mirostat_mu;
  start.constraint = request.constraint;
  start.pooling = request.pooling;
  start.pooled_output = request.pooled_output;
  if (step::needs_history(start)) {
    start.history_begin = static_cast<std::uint32_t>(plan_.tokens.size());
    start.history_count = static_cast<std::uint32_t>(sequence.known.size());
    plan_.tokens.insert(plan_.tokens.end(), sequence.known.begin(), sequence.known.end());
  }
  plan_.starts.push_back(std::move(start));
  sequence.started = true;
}

void StepDriver::add_row(Sequence& sequence, const DrivenRequest& request, std::int32_t generated) {
  if (!sequence.started) add_start(sequence, request, generated);
  step::StepRow row{.slot = sequence.slot, .position = sequence.computed};
  row.adapter = request.adapter;
  row.stretched = sequence.stretched;
  const auto left = static_cast<std::int32_t>(sequence.known.size()) - sequence.computed;
  if (left <= 0) row.input = step::RowInput::kSampled;
  row.count = row.from_sampler() ? 1 : slice_ > 0 ? std::min(left, std::uniform_int_distribution<std::int32_t>(1, slice_)(random_)) : left;
  if (request.media_whole) row.count = whole_spans(request, row.position, row.count);
  for (std::size_t i = 0; i < request.media_grids.size(); ++i)
    if (request.media[i].first + request.media[i].count <= row.position) row.shift += request.media_grids[i].shift();
  if (row.from_sampler() || row.count == left)
    row.output = request.pooling != Pooling::kNone ? step::RowOutput::kVector : step::RowOutput::kSample;
  row.token_begin = static_cast<std::uint32_t>(plan_.tokens.size());
  if (!row.from_sampler()) {
    const std::int32_t end = row.position + row.count;
    plan_.tokens.insert(plan_.tokens.end(), sequence.known.begin() + row.position, sequence.known.begin() + end);
    add_given(request, row);
    if (request.prompt_logprobs >= 0) {
      const auto prompt = static_cast<std::int32_t>(request.prompt.size());
      row.scored = std::max(0, std::min(end, prompt - 1) - row.position);
      row.scored_top = request.prompt_logprobs;
      if (end < prompt) plan_.tokens.push_back(request.prompt[static_cast<std::size_t>(end)]);
    }
  }
  const std::int32_t block_tokens = model_.kv_groups().block_tokens();
  row.block_begin = static_cast<std::uint32_t>(plan_.blocks.size());
  sequence.blocks.resize(model_.kv_groups().groups.size());
  for (std::size_t group = 0; group < sequence.blocks.size(); ++group) {
    std::vector<std::int32_t>& blocks = sequence.blocks[group];
    take_blocks(blocks, std::max(static_cast<std::int32_t>(blocks.size()), (row.position + row.count + block_tokens - 1) / block_tokens));
    const step::Visibility::Blocks invisible = model_.kv_groups().groups[group].visibility.invisible(row.position, block_tokens);
    for (std::int32_t b = invisible.first; b < invisible.last; ++b) free_block(blocks[static_cast<std::size_t>(b)]);
    row.block_count = static_cast<std::uint32_t>(blocks.size());
    plan_.blocks.insert(plan_.blocks.end(), blocks.begin(), blocks.end());
  }
  if (model_.kv_groups().states.blocks() > 0) add_state(sequence, row);
  plan_.rows.push_back(row);
  sequence.computed += row.count;
}

void StepDriver::add_given(const DrivenRequest& request, step::StepRow& row) {
  std::int64_t before = 0;
  row.given_begin = static_cast<std::uint32_t>(plan_.given.size());
  for (std::size_t index = 0; index < request.media.size(); ++index) {
    const MediaSpan& span = request.media[index];
    const MediaGrid grid = request.media_grids.empty() ? MediaGrid() : request.media_grids[index];
    const std::int32_t step = request.media_whole ? span.count : 1;  // one by one: the planner puts them together
    for (std::int32_t i = 0; i < span.count; i += step) {
      const std::int32_t place = span.first + i - row.position;
      if (place >= 0 && place < row.count) plan_.given.push_back({place, step, request.media_vectors, before + i, i, grid});
    }
    before += span.count;
  }
  row.given_count = static_cast<std::uint32_t>(plan_.given.size()) - row.given_begin;
}

// So many tokens, or as many more as the span takes within which they end.
std::int32_t StepDriver::whole_spans(const DrivenRequest& request, std::int32_t begin, std::int32_t count) {
  for (const MediaSpan& span : request.media)
    if (span.first < begin + count && span.first + span.count > begin + count) count = span.first + span.count - begin;
  return count;
}

// A snapshot is taken at a random place of every row.
void StepDriver::add_state(Sequence& sequence, step::StepRow& row) {
  take_blocks(sequence.state, model_.kv_groups().states.blocks());
  take_blocks(sequence.snapshot, model_.kv_groups().states.blocks());
  const auto append = [this](const std::vector<std::int32_t>& blocks) {
    plan_.blocks.insert(plan_.blocks.end(), blocks.begin(), blocks.end());
    return static_cast<std::uint32_t>(plan_.blocks.size() - blocks.size());
  };
  for (std::size_t i = 0; sequence.restores && i < sequence.state.size(); ++i)
    plan_.forks.push_back({sequence.snapshot[i], sequence.state[i]});
  sequence.restores = false;
  row.state_begin = append(sequence.state);
  row.snapshot_begin = static_cast<std::uint32_t>(plan_.snapshots.size());
  row.snapshot_count = 1;
  sequence.snapshot_end = row.position + std::uniform_int_distribution<std::int32_t>(1, row.count)(random_);
  plan_.snapshots.push_back({sequence.snapshot_end, append(sequence.snapshot)});
}

void StepDriver::take_blocks(std::vector<std::int32_t>& blocks, std::int32_t count) {
  while (static_cast<std::int32_t>(blocks.size()) < count) {
    if (free_.empty()) throw std::logic_error("the driver has no block left");
    blocks.push_back(free_.back());
    free_.pop_back();
  }
}

// True when the sequence is complete.
bool StepDriver::apply(Sequence& sequence, const step::StepRow& planned, const step::RowResult& row, const DrivenRequest& request,
                       DrivenAnswer& answer) const {
  EXPECT_TRUE(row.ran);
  if (planned.scored > 0) apply_scored(planned, row, request, answer);
  answer.reason = row.reason;
  const auto vector = result_.vectors.begin() + row.vector_begin;
  answer.vector.assign(vector, vector + row.vector_count);
  if (row.vector_count > 0) return true;
  if (!row.sampled) return row.finished;
  sequence.mirostat_mu = row.mirostat_mu;
  answer.tokens.push_back(row.token);
  answer.logprobs.push_back(row.logprob);
  const auto top = result_.top.begin() + row.top_begin;
  answer.top.insert(answer.top.end(), top, top + row.top_count);
  return row.finished;
}

// Computed anew after a preemption they are the same again. An answer that outgrows the short angles leaves its prompt's as they were.
void StepDriver::apply_scored(const step::StepRow& planned, const step::RowResult& row, const DrivenRequest& request,
                              DrivenAnswer& answer) const {
  ASSERT_EQ(row.scored_count, static_cast<std::uint32_t>(planned.scored));
  const auto tops = static_cast<std::size_t>(request.prompt_logprobs);
  answer.scored.resize(request.prompt.size() - 1);
  answer.scored_top.resize(answer.scored.size() * tops);
  for (std::size_t i = 0; i < row.scored_count; ++i) {
    const step::ScoredToken& scored = result_.scored[row.scored_begin + i];
    const std::size_t place = static_cast<std::size_t>(planned.position) + i;
    EXPECT_EQ(scored.token, request.prompt[place + 1]);
    EXPECT_EQ(scored.top_count, tops);
    if (planned.stretched && static_cast<std::int32_t>(request.prompt.size()) <= model_.shape().stretch_beyond()) continue;
    if (answer.scored[place].token == scored.token) {
      EXPECT_EQ(answer.scored[place].logprob, scored.logprob);
    }
    answer.scored[place] = {scored.token, scored.logprob, 0, scored.top_count};
    std::copy_n(result_.top.begin() + scored.top_begin, tops, answer.scored_top.begin() + static_cast<std::ptrdiff_t>(place * tops));
  }
}

bool StepDriver::outgrows(const Sequence& sequence) const {
  const std::int32_t beyond = model_.shape().stretch_beyond();
  return beyond > 0 && !sequence.stretched && std::max(static_cast<std::int32_t>(sequence.known.size()), sequence.computed + 1) > beyond;
}

void StepDriver::preempt(Sequence& sequence, const DrivenRequest& request, const DrivenAnswer& answer) {
  sequence.restores = sequence.snapshot_end > 0 && random_() % 2 == 0;  // the draw is made for recurrent models only
  if (!sequence.restores) free_blocks(sequence);
  sequence.known = request.prompt;
  sequence.known.insert(sequence.known.end(), answer.tokens.begin(), answer.tokens.end());
  sequence.computed = sequence.restores ? sequence.snapshot_end : 0;
  sequence.started = false;
}

void StepDriver::free_blocks(Sequence& sequence) {
  for (std::vector<std::int32_t>& blocks : sequence.blocks)
    for (std::int32_t& block : blocks) free_block(block);
  for (std::int32_t& block : sequence.state) free_block(block);
  for (std::int32_t& block : sequence.snapshot) free_block(block);
  sequence.blocks.clear();
  sequence.state.clear();
  sequence.snapshot.clear();
  sequence.snapshot_end = 0;
}

void StepDriver::free_block(std::int32_t& block) {
  if (block >= 0) free_.insert(free_.begin(), block);
  block = -1;
}

}  // namespace braid::model::test
