// The guesses of a step: from whom each sequence has its own, and how many there are. Strand only.
#pragma once

#include "model/drafting/drafter.h"
#include "model/drafting/sequence_text.h"
#include "model/sampling/slot.h"
#include "step/step.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <vector>

namespace braid::model {

class Drafts {
 public:
  // `model`, and the heads of the large one: null: there are none. Who may ask both asks the model.
  Drafts(std::size_t slots, std::int32_t vocab, std::shared_ptr<Drafter> model, std::shared_ptr<Drafter> heads = nullptr);

  void start(const step::SlotStart& start, std::span<const TokenId> known);
  // What the slot has sampled.
  void append(step::SlotId slot, TokenId token) { texts_[slot].append(token); }
  // Its sequence is over.
  void end(step::SlotId slot);

  // What drafters have of a block that is saved (Drafter::saved_bytes()).
  std::size_t saved_bytes() const;

  // A step: clear(), then move(), then add() for each of its rows, `room` being 0 where nothing is to be guessed, then make(). `blocks` as in
  // DraftWish; they stay until then.
  void clear();
  void move(const step::StepPlan& plan, std::size_t block_bytes);
  void add(step::SlotId slot, std::size_t room, std::span<const std::int32_t> blocks) {
    rows_.push_back({slot, room, blocks, guesses_.size(), 0}), resize(room);
  }
  // `slots` by their ids.
  void make(std::span<const Slot> slots);

  std::span<const TokenId> of(std::size_t row) const { return std::span(guesses_).subspan(rows_[row].begin, rows_[row].count); }
  std::span<const DraftSource> sources(std::size_t row) const { return std::span(sources_).subspan(rows_[row].begin, rows_[row].count); }
  // A drafter had guessed more, which the row's constraint rules out.
  bool is_cut(std::size_t row) const { return rows_[row].is_cut; }

  // What drafters took of this step.
  const step::DraftWork& work() const { return work_; }
  // What went wrong in this step, if anything: a drafter threw, and its guesses are missing.
  const std::exception_ptr& failure() const { return failure_; }

 private:
  static constexpr int kMostFailures = 3;        // in a row; then it is not asked any more
  static constexpr std::size_t kUsualRead = 16;  // tokens of a text that a guess comes with; of more the pass takes longer

  struct Row {
    step::SlotId slot = 0;
    std::size_t room = 0;
    std::span<const std::int32_t> blocks;
    std::size_t begin = 0;  // in guesses_
    std::size_t count = 0;
    bool by_drafter = false;
    bool is_cut = false;
  };

  // Who guesses what texts do not tell.
  struct Asked {
    std::shared_ptr<Drafter> drafter;  // null: there is none, or it has failed too often
    DraftSource source = DraftSource::kDraft;
    int failures = 0;
    std::vector<DraftWish> wishes = {};
    std::vector<std::size_t> wishing = {};  // parallel to it: the row
  };

  void resize(std::size_t room);
  Asked* asked_by(DraftMethod method);
  void ask(Asked& asked);
  void give_up(Asked& asked);
  void restrict(Row& row, const Slot& slot);

  std::int32_t vocab_;
  std::array<Asked, 2> asked_;
  std::exception_ptr failure_;
  step::DraftWork work_;
  std::vector<SequenceText> texts_;  // by slot
  std::vector<Row> rows_;            // of the plan
  std::vector<TokenId> guesses_;
  std::vector<DraftSource> sources_;
  std::vector<std::uint32_t> mask_;  // a bit for each token
};

}  // namespace braid::model
