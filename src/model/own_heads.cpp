// What a head that guesses for a model hears of it.
#include "model/drafting/eagle_drafter.h"
#include "model/drafting/mtp_drafter.h"
#include "model/language_model.h"

#include <algorithm>
#include <utility>

namespace braid::model {

// Weights that somebody else has loaded may be without.
Result<void> LanguageModel::make_heads() {
  if (options_.passes != nullptr) return {};
  const HeadRoom room{table_, team_, slots_.size(), options_.block_tokens, options_.huge_pages};
  if (options_.eagle != nullptr) return make_eagle(room);
  if (!model_.prediction || first_->weights->prediction.join.matrix.inputs == 0) return {};
  heads_weights_ = first_->weights;
  auto heads = MtpDrafter::create(model_, *heads_weights_, room);
  if (!heads) return heads.error();
  heads_ = std::move(*heads);
  drafts_ = Drafts(slots_.size(), model_.vocab, options_.drafter, heads_);
  return {};
}

Result<void> LanguageModel::make_eagle(const HeadRoom& room) {
  const EagleHead& eagle = *options_.eagle;
  kernels::ThreadTeam& packers = options_.packers != nullptr ? *options_.packers : team_;
  auto own = load_weights(eagle.file, eagle.shape, eagle.shape.context_length, table_, packers, options_.progress, options_.packing,
                          options_.huge_pages);
  if (!own) return own.error();
  heads_weights_ = std::make_shared<const Weights>(std::move(*own));
  auto head = EagleDrafter::create(eagle, model_, *heads_weights_, *first_->weights, room);
  if (!head) return head.error();
  heads_ = std::move(*head);
  drafts_ = Drafts(slots_.size(), model_.vocab, heads_);  // as a model of its own
  return {};
}

// The end of a prompt is, too.
bool LanguageModel::is_heard(const step::StepRow& row, std::int32_t index) const {
  return heads_ != nullptr && row.samples() && index >= row.count - HeadDrafter::kMostHeard && heads_->listens(row.slot);
}

// The residual stream of what is picked, for a head that reads it there.
void LanguageModel::read_layer(std::size_t behind) {
  if (heads_ == nullptr) return;
  const std::span<const std::int32_t> layers = heads_->read_layers();
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    if (std::cmp_not_equal(layers[layer], behind)) continue;
    const auto width = static_cast<std::size_t>(model_.embedding);
    read_.resize(picked_.size() * layers.size() * width);
    for (std::size_t i = 0; i < picked_.size(); ++i)
      if (picked_[i].scored == kSampled || picked_[i].scored == kHeard)
        std::copy_n(space_.residual[pass_.picked[i]], width, read_.data() + (i * layers.size() + layer) * width);
  }
}

// Of what the pass has computed and will stay.
void LanguageModel::tell_heads(const step::StepResult& result) {
  for (std::size_t i = 0; i < picked_.size(); ++i) {
    const Picked& picked = picked_[i];
    const step::RowResult& row = result.rows[picked.row];
    if ((picked.scored != kSampled && picked.scored != kHeard) || !heads_->listens(row.slot)) continue;
    if (std::cmp_greater(picked.place, row.more_count)) continue;
    std::span<const float> hidden = hidden_;
    if (heads_->read_layers().empty()) {
      decoder_->transformer.hidden(static_cast<std::int64_t>(i), space_, hidden_.data());
    } else {
      const auto width = static_cast<std::size_t>(heads_->heard_width());
      hidden = std::span(read_).subspan(i * width, width);
    }
    heads_->hear(row.slot, static_cast<std::int32_t>(picked.position) - 1, hidden);
  }
}

}  // namespace braid::model
