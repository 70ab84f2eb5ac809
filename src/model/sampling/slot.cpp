#include "model/sampling/slot.h"

#include "model/sampling/mirostat.h"

#include <algorithm>

namespace braid::model {

void Slot::start(const step::SlotStart& start, std::span<const TokenId> known, std::span<const TokenId> end_tokens) {
  sampling_ = start.sampling;
  max_tokens_ = start.stop.max_tokens;
  min_tokens_ = start.stop.min_tokens;
  generated_ = start.generated;
  has_sampled_ = false;
  finished_ = false;
  mirostat_mu_ = generated_ > 0 ? start.mirostat_mu : mirostat_start(sampling_);

  history_.reset();
  if (step::looks_back(sampling_)) history_.emplace().start(sampling_, known, generated_, max_tokens_ - generated_);
  constraint_ = start.constraint;
  constraint_state_.reset();
  if (constraint_ != nullptr)
    constraint_state_ = constraint_->start(known.last(std::min(known.size(), static_cast<std::size_t>(generated_))));

  enders_.assign(start.stop.stop_token_ids.begin(), start.stop.stop_token_ids.end());
  enders_.insert(enders_.end(), end_tokens.begin(), end_tokens.end());
  // A constraint allows an end-of-sequence token where the text is complete: there is nothing to go on with.
  const bool ignore_eos = start.stop.ignore_eos && constraint_ == nullptr;
  effective_ = ignore_eos ? start.stop.stop_token_ids.size() : enders_.size();
}

SamplingState Slot::state(std::int64_t position) {
  return {.params = sampling_,
          .position = position,
          .banned = generated_ < min_tokens_ ? std::span<const TokenId>(enders_) : std::span<const TokenId>(),
          .history = history_ ? &*history_ : nullptr,
          .constraint = constraint_state_.get(),
          .mirostat_mu = mirostat_mu_};
}

void Slot::accept(const std::optional<SampledToken>& sampled, step::RowResult& row) {
  if (!sampled) {
    abandon();
    row.finished = true;
    row.reason = FinishReason::kError;
    return;
  }
  last_ = sampled->token;
  mirostat_mu_ = sampled->mirostat_mu;
  has_sampled_ = true;
  generated_ += 1;
  const bool is_end = ends(last_);
  row.sampled = true;
  row.token = last_;
  row.mirostat_mu = mirostat_mu_;
  row.finished = is_end || generated_ >= max_tokens_;
  row.reason = is_end ? FinishReason::kStop : FinishReason::kLength;
  if (row.finished) {
    abandon();
  } else {
    if (history_) history_->append(last_);
    if (constraint_state_) constraint_state_->accept(last_);
  }
}

bool Slot::ends(TokenId token) const {
  const auto end = enders_.begin() + static_cast<std::ptrdiff_t>(effective_);
  return std::find(enders_.begin(), end, token) != end;
}

void Slot::abandon() {
  finished_ = true;
  constraint_state_.reset();
  constraint_.reset();
}

}  // namespace braid::model
