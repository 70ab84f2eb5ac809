#include "model/drafting/drafts.h"

#include "model/drafting/constraint_path.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace braid::model {

Drafts::Drafts(std::size_t slots, std::int32_t vocab, std::shared_ptr<Drafter> model, std::shared_ptr<Drafter> heads)
    : vocab_(vocab), asked_{Asked{.drafter = std::move(model), .source = DraftSource::kDraft},
                            Asked{.drafter = std::move(heads), .source = DraftSource::kMtp}},
      texts_(slots), mask_((static_cast<std::size_t>(vocab) + 31) / 32) {}

void Drafts::start(const step::SlotStart& start, std::span<const TokenId> known) {
  texts_[start.slot].start(start, known);
  for (const Asked& asked : asked_)
    if (asked.drafter != nullptr) asked.drafter->start(start);
}

void Drafts::end(step::SlotId slot) {
  texts_[slot].clear();
  for (const Asked& asked : asked_)
    if (asked.drafter != nullptr) asked.drafter->end(slot);
}

std::size_t Drafts::saved_bytes() const {
  std::size_t bytes = 0;
  for (const Asked& asked : asked_)
    if (asked.drafter != nullptr) bytes += asked.drafter->saved_bytes();
  return bytes;
}

// Who does not keep up with the blocks is not asked any more.
void Drafts::move(const step::StepPlan& plan, std::size_t block_bytes) {
  for (Asked& asked : asked_) {
    if (asked.drafter == nullptr) continue;
    try {
      asked.drafter->move(plan, block_bytes);
    } catch (...) {
      failure_ = std::current_exception();
      give_up(asked);
    }
  }
}

void Drafts::give_up(Asked& asked) {
  asked.drafter->give_up();
  asked.drafter.reset();
}

void Drafts::clear() {
  rows_.clear();
  guesses_.clear();
  sources_.clear();
  failure_ = nullptr;
  work_ = {};
}

void Drafts::resize(std::size_t room) {
  guesses_.resize(guesses_.size() + room);
  sources_.resize(guesses_.size());
}

void Drafts::make(std::span<const Slot> slots) {
  for (Asked& asked : asked_) {
    asked.wishes.clear();
    asked.wishing.clear();
  }
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    if (row.room == 0) continue;
    SequenceText& text = texts_[row.slot];
    const std::span<TokenId> guesses = std::span(guesses_).subspan(row.begin, row.room);
    const auto [count, source] = text.guess(guesses);
    row.count = count;
    std::fill_n(sources_.begin() + static_cast<std::ptrdiff_t>(row.begin), row.room, source);
    Asked* const asked = count == 0 ? asked_by(text.method()) : nullptr;
    if (asked == nullptr) continue;
    asked->wishes.push_back({.slot = row.slot, .text = text.tokens(), .guesses = guesses, .blocks = row.blocks});
    asked->wishing.push_back(i);
  }
  for (Asked& asked : asked_)
    if (!asked.wishes.empty()) ask(asked);
  for (Row& row : rows_)
    if (row.room > 0) restrict(row, slots[row.slot]);
}

// Null: nobody.
Drafts::Asked* Drafts::asked_by(DraftMethod method) {
  auto& [model, heads] = asked_;
  if (model.drafter != nullptr && (method == DraftMethod::kAuto || method == DraftMethod::kDraft)) return &model;
  return heads.drafter != nullptr && (method == DraftMethod::kAuto || method == DraftMethod::kMtp) ? &heads : nullptr;
}

// Whatever it does, the step goes on.
void Drafts::ask(Asked& asked) {
  const auto begin = std::chrono::steady_clock::now();
  try {
    asked.drafter->draft(asked.wishes);
    asked.failures = 0;
  } catch (...) {
    failure_ = std::current_exception();
    if (++asked.failures == kMostFailures) give_up(asked);
    return;
  }
  work_.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  work_.rows += static_cast<std::int32_t>(asked.wishes.size());
  bool reads_text = false;  // which tells nothing of a pass
  for (std::size_t i = 0; i < asked.wishes.size(); ++i) {
    Row& row = rows_[asked.wishing[i]];
    row.count = std::min(asked.wishes[i].count, row.room);
    row.by_drafter = true;
    work_.passes = std::max(work_.passes, static_cast<std::int32_t>(row.count));
    work_.read += static_cast<std::int32_t>(asked.wishes[i].read);
    if (asked.wishes[i].read > kUsualRead) reads_text = true;
    std::fill_n(sources_.begin() + static_cast<std::ptrdiff_t>(row.begin), row.count, asked.source);
  }
  if (reads_text) work_.passes = 0;
}

// To tokens that there are, that the constraint allows, and to the first that ends the answer.
void Drafts::restrict(Row& row, const Slot& slot) {
  const std::span<TokenId> guesses = std::span(guesses_).subspan(row.begin, row.room);
  const auto in_vocab = [this](TokenId token) { return token >= 0 && token < vocab_; };
  row.count = static_cast<std::size_t>(std::ranges::find_if_not(guesses.first(row.count), in_vocab) - guesses.begin());
  try {
    if (const std::unique_ptr<ConstraintState> ahead = slot.look_ahead()) {
      const std::size_t guessed = row.count;
      row.count = keep_to_constraint(*ahead, guesses, row.count, std::span(sources_).subspan(row.begin, row.room), mask_);
      row.is_cut = row.by_drafter && row.count < guessed;
    }
  } catch (...) {
    row.count = 0;  // the row itself will come upon it
  }
  const auto ends = [&slot](TokenId token) { return slot.ends(token); };
  const auto end = std::ranges::find_if(guesses.first(row.count), ends);
  row.count = std::min(row.count, static_cast<std::size_t>(end - guesses.begin()) + 1);
}

}  // namespace braid::model
