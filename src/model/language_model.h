// A loaded model that executes steps. Loading may run on any thread; everything after it belongs to the compute strand, except the
// constant facts.
#pragma once

#include "braid/result.h"
#include "files/gguf.h"
#include "files/progress.h"
#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"
#include "model/adapters/adapter_table.h"
#include "model/copies.h"
#include "model/decoder.h"
#include "model/drafting/drafter.h"
#include "model/drafting/drafts.h"
#include "model/drafting/head_drafter.h"
#include "model/families/eagle3.h"
#include "model/kv_arena.h"
#include "model/kv_growth.h"
#include "model/model_shape.h"
#include "model/pass_runner.h"
#include "model/pooling.h"
#include "model/rank_gather.h"
#include "model/sampling/sampler.h"
#include "model/sampling/slot.h"
#include "model/weights.h"
#include "model/workspace.h"
#include "step/pass.h"
#include "step/step.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace braid::model {

struct LoadOptions {
  int threads = 1;                         // of the kernel team, the strand's own included
  kernels::ThreadTeam* team = nullptr;     // that it shares with other models and does not outlive; null: one of its own
  kernels::ThreadTeam* packers = nullptr;  // that pack the weights while `team` computes something else; null: `team`
  // Those of a model loaded from the same file with the same packing, context and tier; null: the file's are packed.
  std::shared_ptr<const Weights> weights = {};
  std::vector<int> cpus = {};                                    // one for each of them, to which they are pinned; empty: not pinned
  files::HugePages huge_pages = files::HugePages::kTransparent;  // of weights, workspace and pool
  std::int32_t context_length = 0;                               // 0: the model's
  std::int32_t block_tokens = 16;
  std::optional<kernels::KvType> kv_type = {};  // the tier's own otherwise
  Packing packing = {};                         // how weights are computed
  std::int32_t kv_limit = 0;                    // positions a token may see, the first kSinkTokens among them; 0: all
  std::int32_t max_batch = 256;                 // slots
  std::int32_t pass_rows = 512;                 // tokens computed together; a longer step takes several passes
  // With recurrent layers, guessed tokens of a step that are verified: what these layers read of each is kept. 0: none are guessed.
  std::int32_t state_drafts = 0;
  struct Judging {
    TokenId yes = 0;
    TokenId no = 0;
    std::optional<bool> head_has_yes_first = {};  // the file's head has these two classes; nullopt: the output's rows are taken
  };
  bool media_both_ways = false;   // tokens of a span of media attend to all of it, which is to be within a row and not longer than a pass
  std::int32_t media_layers = 0;  // so many vectors more are given for a token: what is added behind each of the first layers
  std::optional<Judging> judging = {};    // a head of one class: how much more the next token is `yes` than `no`
  std::vector<TokenId> end_tokens;        // the model's end-of-sequence tokens
  files::Progress progress;               // called on the loading thread; may be empty
  Exchange* exchange = nullptr;           // with the ranks of packing.share; outlives the model; null: there is one rank
  std::shared_ptr<Drafter> drafter = {};  // guesses what texts do not tell; null: nobody does
  bool heads = false;  // so does the model's own head for tokens further on, where the file has one and there is one rank
  std::shared_ptr<const EagleHead> eagle = {};  // so does this one, in the place of both; null: there is none, or there are several ranks
  std::shared_ptr<PassRunner> passes = {};      // who computes, with weights and a pool of their own; null: this machine
};

struct MemoryEstimate {
  std::uint64_t weights = 0;
  std::uint64_t workspace = 0;
  std::uint64_t kv_block = 0;  // one block of block_tokens positions
  std::int32_t context = 0;    // tokens of a sequence
  std::vector<step::Visibility> kv_groups = {};
  std::int32_t state_blocks = 0;  // of a sequence's recurrent state
};

// Rows of a pass whose logits exist at once.
std::int32_t logit_rows_at_once(std::int32_t vocab, std::int32_t pass_rows);

// What loading with these options would take, after all the checks of loading.
Result<MemoryEstimate> estimate_memory(const files::GgufFile& file, const kernels::KernelTable& table, const LoadOptions& options);

class LanguageModel final : public step::StepExecutor {
 public:
  // The file is not needed after loading.
  static Result<std::unique_ptr<LanguageModel>> load(const files::GgufFile& file, const kernels::KernelTable& table, LoadOptions options);

  // Allocates and pre-faults the pool; once, before the first step. What of it is not needed for the first steps may be left to a thread
  // that does so while they run. Plans may come to use `most` blocks, of which those behind the first `blocks` get their pages when they are
  // written to; 0: no others.
  enum class Prefault { kNow, kInBackground };
  Result<void> allocate_kv(std::int32_t blocks, Prefault prefault = Prefault::kNow, std::int32_t most = 0);

  // No step names a block again: their memory is the system's. Strand.
  void give_back_kv();

  const ModelShape& shape() const { return model_; }
  // What tokens of a group see: a block that is invisible to a row may be -1 in its block table (step.h).
  const KvGroups& kv_groups() const { return kv_groups_; }
  // As blocks lie outside of the pool: those of one rank, where several compute the model.
  const KvGroups& record_groups() const { return record_groups_ ? *record_groups_ : kv_groups_; }
  // Of a buffer that a block is saved to or loaded from: the block's, and what drafters have of it.
  std::size_t saved_bytes() const { return record_groups().block_bytes() + draft_bytes_; }
  // Of the first group, which is the only one where all layers see alike.
  const KvLayout& kv_layout() const { return kv_groups_.layout(0); }
  std::int32_t context_length() const { return context_; }
  std::int64_t classes() const { return classes_; }  // of the head; 0: there is none
  std::int64_t parameters() const { return parameters_; }
  std::uint64_t weight_bytes() const { return weight_bytes_; }
  std::uint64_t workspace_bytes() const { return space_.storage.size() + (heads_ != nullptr ? heads_->bytes() : 0); }
  bool has_heads() const { return heads_ != nullptr && options_.eagle == nullptr; }
  bool has_eagle() const { return heads_ != nullptr && options_.eagle != nullptr; }
  std::uint64_t eagle_bytes() const { return has_eagle() ? heads_weights_->packed_bytes : 0; }  // of its weights
  // Of the weights that it was loaded with, which a head guesses with whatever revision is current: its own, or one that has no embedding. 0:
  // there is no such head.
  std::uint64_t kept_bytes() const {
    const bool borrows = has_eagle() && options_.eagle->shape.input.name.empty();
    return has_heads() || borrows ? weight_bytes_ : 0;
  }
  // Bytes of the pool, of which `promised` are in use, that have no pages yet. Any thread.
  std::uint64_t untouched_kv_bytes(std::uint64_t promised) const;

  // What rows name by their adapter.
  AdapterTable& adapters() { return adapters_; }

  // The revision of the weights that it was loaded with, which rows compute with that name no other. Not after forget_first().
  const std::shared_ptr<const Decoder>& first() const { return first_; }
  // Another one, of weights with the same shapes and types. Any thread.
  std::shared_ptr<const Decoder> make_decoder(std::shared_ptr<const Weights> weights, std::shared_ptr<const Copies> copies = {});
  // Who computes its passes elsewhere, with weights and adapters of their own; null: nobody.
  PassRunner* passes() const { return options_.passes.get(); }
  // `older` with the tensors of a file in the place of its own (newer_weights()), packed by one thread; where others compute, who have the
  // matrices, what is none (newer_values()). Any thread.
  Result<std::shared_ptr<const Weights>> newer_weights(const Weights& older, const files::GgufFile& file) const;
  // All values of some weights of it (model::tell_values()). Any thread.
  void tell_values(const Weights& weights, TensorSink& sink) const { model::tell_values(weights, model_, context_, table_, sink); }
  // No plan names it any more, as with AdapterTable::set(). Loop.
  std::shared_ptr<const Decoder> forget_first() { return std::exchange(first_, nullptr); }

  // A plan that breaks step.h's rules sets `failure` before anything is changed.
  void execute(const step::StepPlan& plan, step::StepResult& result) override;

  // The same by the loading thread, before there is a strand: where the team is pinned, this thread is not.
  void compute(const step::StepPlan& plan, step::StepResult& result);

 private:
  static constexpr TokenId kNoGuess = -1;
  static constexpr std::size_t kSampled = ~std::size_t{0};
  static constexpr std::size_t kPooled = kSampled - 1;
  static constexpr std::size_t kHeard = kSampled - 2;
  static constexpr std::size_t kTapped = kSampled - 3;
  struct Picked {
    std::size_t row;        // of the plan
    std::int64_t position;  // of the token that the logits foretell
    // That token's index in StepResult::scored; or kSampled: it is to be sampled; or kPooled: the token itself is part of a vector; or kHeard: its
    // hidden state is for the head alone; or kTapped: as kPooled, of what the last layer reads.
    std::size_t scored;
    std::int32_t place = 0;      // where a row verifies: of the token within its row
    TokenId guessed = kNoGuess;  // and the one that was drafted to follow it
  };

  LanguageModel(const ModelShape& model, const kernels::KernelTable& table, LoadOptions options, std::int32_t context, KvGroups kv_groups,
                std::unique_ptr<kernels::ThreadTeam> own_team, std::shared_ptr<const Weights> weights, Workspace space);
  Result<void> make_heads();
  Result<void> make_eagle(const HeadRoom& room);

  void check(const step::StepPlan& plan) const;
  void reach_blocks(const step::StepPlan& plan);
  void check_start(const step::SlotStart& start, const step::StepPlan& plan) const;
  void check_state(const step::StepRow& row, const step::StepPlan& plan) const;
  void check_given(const step::StepRow& row, const step::StepPlan& plan) const;
  void check_blocks(std::span<const std::int32_t> blocks, std::int32_t position, const step::Visibility& visibility) const;
  void move_blocks(const step::StepPlan& plan, step::StepResult& result);
  void run(const step::StepPlan& plan, step::StepResult& result);
  void abandon(const step::StepPlan& plan);
  void start_slots(const step::StepPlan& plan);
  void announce_scored(const step::StepPlan& plan, const step::StepRow& row, step::RowResult& row_result, step::StepResult& result) const;
  std::optional<std::size_t> purpose_of(const step::StepRow& row, const step::RowResult& row_result, std::int32_t index) const;
  const Decoder& decoder_of(const step::StepRow& row) const;
  void start_pass();
  void add_rows(const step::StepPlan& plan, step::StepResult& result);
  void add_row(const step::StepPlan& plan, std::size_t index, step::StepResult& result);
  const step::GivenVectors* given_at(const step::StepPlan& plan, const step::StepRow& row, std::int32_t index) const;
  void give_vector(const step::GivenVectors& given, std::int32_t index, std::int32_t& shift);
  std::int64_t given_width() const { return std::int64_t{model_.embedding} * (1 + options_.media_layers); }
  // Blocks of the first group have all positions of their sequences, so that a drafter's may lie beside them.
  bool shares_blocks() const { return kv_groups_.groups.front().visibility.window == 0; }
  void move_drafts(const step::StepPlan& plan);
  void draft(const step::StepPlan& plan, step::StepResult& result);
  std::int32_t draft_room(const step::StepRow& row) const;
  void place_drafts(std::size_t index, step::RowResult& row_result, step::StepResult& result) const;
  void settle_row(const step::StepRow& row, step::RowResult& row_result, step::StepResult& result);
  void remember(const step::RowResult& row_result, const step::StepResult& result);
  void run_pass(step::StepResult& result);
  void compute_pass();
  void read_layer(std::size_t behind);
  Rows logits_of(std::size_t begin, std::size_t count);
  bool is_heard(const step::StepRow& row, std::int32_t index) const;
  void tell_heads(const step::StepResult& result);
  void replay_drafts(const step::StepResult& result);
  void copy_states(const step::StepPlan& plan, const step::StepResult& result) const;
  void use_logits(std::size_t begin, std::size_t end, step::StepResult& result);
  void make_tops(std::size_t begin, std::size_t end, step::StepResult& result);
  void read_last_inputs();
  void pool(std::size_t picked, const step::StepResult& result);
  const ClassHead& head_of(const step::StepRow& row) const;
  void report_vector(const step::StepRow& row, step::RowResult& row_result, step::StepResult& result) const;
  void score(Sampler& sampler, std::span<const float> logits, step::ScoredToken& scored, step::StepResult& result) const;
  void sample(Sampler& sampler, std::span<const float> logits, const Picked& picked, step::StepResult& result);

  const ModelShape model_;
  const LoadOptions options_;
  const std::int32_t context_;
  const KvGroups kv_groups_;
  const std::optional<KvGroups> record_groups_;          // none: they are the same
  const std::unique_ptr<kernels::ThreadTeam> own_team_;  // null: it shares one
  kernels::ThreadTeam& team_;
  const kernels::KernelTable& table_;
  AdapterTable adapters_;
  RankGather ranks_;
  std::shared_ptr<const Decoder> first_;
  const std::int64_t classes_;
  const std::int64_t parameters_;
  const std::uint64_t weight_bytes_;
  Workspace space_;
  const std::size_t logit_rows_;       // that exist at once
  std::int32_t blocks_ = 0;            // of the pool; 0: there is none yet
  std::optional<KvArena> kv_;          // none where passes are computed elsewhere
  std::optional<KvGrowth> kv_growth_;  // stays when it is over, because any thread may ask it
  std::vector<Slot> slots_;
  std::vector<Pool> pools_;                       // by slot
  std::vector<PooledOutput> outputs_;             // likewise, of those that pool
  std::vector<float> hidden_;                     // [embedding]
  std::vector<Sampler> samplers_;                 // one for each member of the team
  std::vector<std::int32_t> next_;                // by slot: the position of its next token
  std::shared_ptr<const Weights> heads_weights_;  // of the first revision, or an EAGLE head's own, with which they guess
  std::shared_ptr<HeadDrafter> heads_;            // null: there are none
  Drafts drafts_;                                 // of the plan's rows
  const std::size_t draft_bytes_;                 // that drafters have of a saved block; 0 where they have none of the model's blocks
  std::vector<std::uint8_t> settled_;             // by row of the plan: a guess of it was wrong, or it has ended
  const std::function<void()>* between_layers_ = nullptr;  // of the plan
  const Decoder* decoder_ = nullptr;                       // of pass_
  std::vector<std::uint8_t> added_;                        // by row of the plan: it has been put into a pass
  step::Pass pass_;                                        // being put together
  std::vector<std::size_t> pass_rows_;                     // parallel to its sequences: the row of the plan
  std::int32_t kept_ = 0;                                  // guesses in it of sequences with a state
  step::Pass replay_;                                      // of guesses that were right
  std::vector<Picked> picked_;                             // what the hidden states of pass_.picked are for
  std::vector<float> read_;                                // [picked, layers, embedding]: what a head reads of them
  std::vector<std::size_t> claims_;  // first ones in picked_ of those that one member of the team sees to, and the end
  std::vector<float> last_inputs_;   // [picked, embedding]: what the last layer reads of them, where that is wanted
};

}  // namespace braid::model
