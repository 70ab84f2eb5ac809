// Logits of tokens that were picked in a pass, and what they are for: log-probabilities of known tokens, and new ones.
#include "model/language_model.h"

#include <algorithm>
#include <limits>

namespace braid::model {

Rows LanguageModel::logits_of(std::size_t begin, std::size_t count) {
  if (options_.passes != nullptr) return options_.passes->logits(static_cast<std::int64_t>(begin), static_cast<std::int64_t>(count));
  decoder_->transformer.logits(static_cast<std::int64_t>(begin), static_cast<std::int64_t>(count), space_);
  return space_.logits;
}

// Computes the logits of picked_[begin, end) and what they are for. Those of a row that verifies follow from each other.
void LanguageModel::use_logits(std::size_t begin, std::size_t end, step::StepResult& result) {
  const Rows all = logits_of(begin, end - begin);
  make_tops(begin, end, result);
  claims_.clear();
  for (std::size_t i = begin; i < end; ++i)
    if (i == begin || picked_[i].place == 0) claims_.push_back(i);
  claims_.push_back(end);
  team_.for_chunks(static_cast<std::int64_t>(claims_.size() - 1), 1, [&](std::int64_t from, std::int64_t to, int member) {
    Sampler& sampler = samplers_[static_cast<std::size_t>(member)];
    for (std::size_t i = claims_[static_cast<std::size_t>(from)]; i < claims_[static_cast<std::size_t>(to)]; ++i) {
      const Picked& picked = picked_[i];
      const std::span<const float> logits(all[static_cast<std::int64_t>(i - begin)], static_cast<std::size_t>(model_.vocab));
      if (picked.scored != kSampled) {
        score(sampler, logits, result.scored[picked.scored], result);
      } else if (settled_[picked.row] == 0) {
        sample(sampler, logits, picked, result);
      }
    }
  });
}

// Places for the best tokens beside those that are sampled.
void LanguageModel::make_tops(std::size_t begin, std::size_t end, step::StepResult& result) {
  for (std::size_t i = begin; i < end; ++i) {
    if (picked_[i].scored != kSampled) continue;
    step::RowResult& row = result.rows[picked_[i].row];
    const auto top_begin = static_cast<std::uint32_t>(result.top.size());
    const auto top_count = static_cast<std::uint32_t>(std::clamp(slots_[row.slot].top_logprobs(), 0, kMaxTopLogprobs));
    result.top.resize(result.top.size() + top_count);
    if (picked_[i].place > 0) {
      step::AnswerToken& more = result.more[row.more_begin + static_cast<std::size_t>(picked_[i].place) - 1];
      more.top_begin = top_begin;
      more.top_count = top_count;
    } else {
      row.top_begin = top_begin;
      row.top_count = top_count;
    }
  }
}

void LanguageModel::score(Sampler& sampler, std::span<const float> logits, step::ScoredToken& scored, step::StepResult& result) const {
  const Logprob logprob = sampler.log_probability(logits, scored.token, std::span(result.top).subspan(scored.top_begin, scored.top_count));
  scored.logprob = logprob.value;
  scored.top_count = logprob.top_count;
}

namespace {

// What was sampled, for a row or for one more of its tokens, with its log-probabilities where they are wanted.
template <class Answered>
void report(Sampler& sampler, std::span<const float> logits, const SampledToken& sampled, bool with_logprobs, Answered& answered,
            step::StepResult& result) {
  const std::span<TokenLogprob> top = std::span(result.top).subspan(answered.top_begin, answered.top_count);
  answered.token = sampled.token;
  answered.drawn_logprob = sampled.drawn_logprob;
  answered.top_count = 0;
  if (!with_logprobs) return;
  const Logprob logprob = sampler.log_probability(logits, sampled.token, top);
  answered.logprob = logprob.value;
  answered.top_count = logprob.top_count;
}

}  // namespace

// The row's first token, or one more because what was drafted before it is what was sampled.
void LanguageModel::sample(Sampler& sampler, std::span<const float> logits, const Picked& picked, step::StepResult& result) {
  step::RowResult& row = result.rows[picked.row];
  Slot& slot = slots_[row.slot];
  const TokenId first = row.token;
  std::optional<SampledToken> sampled;
  try {
    sampled = sampler.sample(logits, slot.state(picked.position));
    slot.accept(sampled, row);
    row.ruled_out = !sampled && std::ranges::any_of(logits, [](float logit) { return logit > -std::numeric_limits<float>::infinity(); });
  } catch (...) {  // on a thread of the team, and nobody else's fault
    sampled.reset();
    slot.accept(sampled, row);
    row.failure = std::current_exception();
  }
  settled_[picked.row] = row.finished || sampled->token != picked.guessed ? 1 : 0;
  if (!sampled) {
    row.sampled = false;
    row.top_count = 0;
  } else if (picked.place == 0) {
    report(sampler, logits, *sampled, slot.top_logprobs() >= 0, row, result);
  } else {
    row.token = first;
    report(sampler, logits, *sampled, slot.top_logprobs() >= 0, result.more[row.more_begin + row.more_count++], result);
  }
}

}  // namespace braid::model
