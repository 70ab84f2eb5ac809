// What a model's own head for tokens further on hears.
#include "model/language_model.h"

#include <utility>

namespace braid::model {

// Weights that somebody else has loaded may be without.
Result<void> LanguageModel::make_heads(const kernels::KernelTable& table) {
  if (options_.passes != nullptr || !model_.prediction || first_->weights->prediction.join.matrix.inputs == 0) return {};
  heads_weights_ = first_->weights;
  auto heads = HeadDrafter::create(model_, *heads_weights_, table, team_, slots_.size(), options_.block_tokens, options_.huge_pages);
  if (!heads) return heads.error();
  heads_ = std::move(*heads);
  drafts_ = Drafts(slots_.size(), model_.vocab, options_.drafter, heads_);
  return {};
}

// The end of a prompt is, too.
bool LanguageModel::is_heard(const step::StepRow& row, std::int32_t index) const {
  return heads_ != nullptr && row.samples() && index >= row.count - HeadDrafter::kMostHeard && heads_->listens(row.slot);
}

// Of what the pass has computed and will stay.
void LanguageModel::tell_heads(const step::StepResult& result) {
  for (std::size_t i = 0; i < picked_.size(); ++i) {
    const Picked& picked = picked_[i];
    const step::RowResult& row = result.rows[picked.row];
    if ((picked.scored != kSampled && picked.scored != kHeard) || !heads_->listens(row.slot)) continue;
    if (std::cmp_greater(picked.place, row.more_count)) continue;
    decoder_->transformer.hidden(static_cast<std::int64_t>(i), space_, hidden_.data());
    heads_->hear(row.slot, static_cast<std::int32_t>(picked.position) - 1, hidden_);
  }
}

}  // namespace braid::model
