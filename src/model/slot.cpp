#include <model/slot.h>

#include <algorithm>

namespace braid::model {

void Slot::start(const SlotStart& start, std::span<const TokenId> end_tokens) {
  sampling_ = start.sampling;
  enders_.assign(start.stop.stop_token_ids.begin(), start.stop.stop_token_ids.end());
  enders_.insert(enders_.end(), end_tokens.begin(), end_tokens.end());
  effective_ = start.stop.ignore_eos ? start.stop.stop_token_ids.size() : enders_.size();
  max_tokens_ = start.stop.max_tokens;
  min_tokens_ = start.stop.min_tokens;
  generated_ = start.generated;
  has_sampled_ = false;
  finished_ = false;
}

std::span<const TokenId> Slot::banned() const {
  if (generated_ >= min_tokens_) return {};
  return enders_;
}

void Slot::accept(TokenId token, RowResult& row) {
  last_ = token;
  has_sampled_ = true;
  generated_ += 1;
  const auto end = enders_.begin() + static_cast<std::ptrdiff_t>(effective_);
  const bool ends = std::find(enders_.begin(), end, token) != end;
  finished_ = ends || generated_ >= max_tokens_;
  row.sampled = true;
  row.token = token;
  row.finished = finished_;
  row.reason = ends ? FinishReason::kStop : FinishReason::kLength;
}

}  // namespace braid::model
