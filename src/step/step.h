// What crosses between the loop and the compute strand: a StepPlan moves over, a StepResult moves back. Plain values, made to be
// reused: clear() keeps the capacity, so that a steady decode allocates nothing.
#pragma once

#include "braid/constraint.h"
#include "braid/generation_request.h"
#include "braid/media_span.h"
#include "braid/token_event.h"
#include "step/answer_automaton.h"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace braid::step {

// Index of a sequence's sampling state on the strand, in [0, max_batch). The loop hands slots out and takes them back.
using SlotId = std::uint32_t;

// What a row's tokens are.
enum class RowInput : std::uint8_t {
  kTokens,   // those of StepPlan::tokens, but where vectors are given instead of them (GivenVectors)
  kSampled,  // the one that its slot sampled last, known to the strand only; the row has one token
};

// What is wanted of a row's last token.
enum class RowOutput : std::uint8_t {
  kNone,    // its keys and values only
  kSample,  // the next token
  kVerify,  // the next token, and as many after it as drafted ones turn out right
  kVector,  // the vector of all its sequence, by SlotStart::pooling, or its class scores
};

// Sampling state a sequence brings along when it first joins a step (or joins again after a preemption): with it the strand goes on
// as if the sequence had never left.
struct SlotStart {
  SlotId slot = 0;
  SamplingParams sampling;
  StopRules stop;              // max_tokens already cut to the room in the context
  std::int32_t generated = 0;  // tokens sampled before a preemption: they count towards min_tokens and max_tokens
  // All known tokens, the last `generated` of them the answer's: [history_begin, history_begin + history_count) of StepPlan::tokens.
  // Only where needs_history() is true.
  std::uint32_t history_begin = 0;
  std::uint32_t history_count = 0;
  float mirostat_mu = 0.0F;                           // RowResult::mirostat_mu of the last token; unused before the first
  std::shared_ptr<const Constraint> constraint = {};  // of the answer; null: none
  // With kMean, kFirst or kEach the rows that follow bring all positions from 0 on, each once and in order.
  Pooling pooling = Pooling::kNone;
  PooledOutput pooled_output = PooledOutput::kVector;  // what the model's head makes of the vector in its place: class scores
  std::int32_t pooled_from = 0;                        // kEach: the first token
  Speculation speculation = {.method = DraftMethod::kOff};
  RecentAnswers recent = {};  // of the same client; null: none
};

// Whether the choice of a token looks at those before it.
inline bool looks_back(const SamplingParams& sampling) {
  return sampling.repetition_penalty != 1.0F || sampling.presence_penalty != 0.0F || sampling.frequency_penalty != 0.0F ||
         sampling.dry_multiplier != 0.0F;
}
inline bool needs_history(const SlotStart& start) {
  return looks_back(start.sampling) || (start.constraint != nullptr && start.generated > 0) ||
         start.speculation.method != DraftMethod::kOff;
}

// One sequence's part of a step: `count` tokens at positions [position, position + count).
//
// With kVerify the input is kSampled, and up to `drafts` tokens that the strand drafts follow it. How many of them hold is not known before
// the result is back, and the next step is planned before that: so `position` is the least that the first token can have, and it may be
// up to `slack` more. The blocks cover the most that the row can reach, or end where the answer must; the strand drafts no further.
struct StepRow {
  SlotId slot = 0;
  std::int32_t position = 0;
  std::int32_t count = 1;
  std::uint32_t token_begin = 0;  // into StepPlan::tokens; only with RowInput::kTokens
  std::uint32_t block_begin = 0;  // into StepPlan::blocks
  // Covers positions [0, position + slack + count + drafts); -1 where Visibility hides a block. Where layers fall into groups, so many
  // blocks of each follow one after the other.
  std::uint32_t block_count = 0;
  RowInput input = RowInput::kTokens;
  RowOutput output = RowOutput::kNone;
  std::int32_t slack = 0;
  std::int32_t drafts = 0;
  // Prompt log-probabilities: of the `scored` tokens that follow the row's first one, each given all before it. Those are
  // tokens[token_begin + 1, token_begin + 1 + scored): the plan has one token more behind a slice that is not the prompt's last.
  // At most count, and at most count - 1 with an output.
  std::int32_t scored = 0;
  std::int32_t scored_top = 0;  // so many best tokens with each, at most kMaxTopLogprobs
  // Where the model has recurrent layers: into StepPlan::blocks, the blocks of its sequence's state, which stands for [0, position) before the
  // row (at 0 whatever they hold) and for what the cache holds of the sequence after it. And of StepPlan::snapshots, those to be taken on the way.
  std::uint32_t state_begin = 0;
  std::uint32_t snapshot_begin = 0;
  std::uint32_t snapshot_count = 0;

  // With RowInput::kTokens: into StepPlan::given, in ascending order of tokens and without overlap.
  std::uint32_t given_begin = 0;
  std::uint32_t given_count = 0;
  // The rotary position of its first token is `position` + shift, or, where that lies within a span that is a grid, that of the span's first
  // token is so much more than its position.
  std::int32_t shift = 0;
  std::uint32_t adapter = 0;  // the same in all rows of a sequence: of the model's adapters, counted from 1; 0: none
  // Computed with the angles of long sequences, where the model has such (SchedulerOptions::stretch_beyond); so is all that it sees.
  bool stretched = false;

  bool from_sampler() const { return input == RowInput::kSampled; }
  bool samples() const { return output == RowOutput::kSample || output == RowOutput::kVerify; }
};

// Some of a row's tokens are no text, and have vectors: an image's, say.
struct GivenVectors {
  std::int32_t first = 0;  // of the row's tokens
  std::int32_t count = 1;
  MediaVectors vectors;
  std::int64_t begin = 0;   // which of these is the first token's
  std::int32_t offset = 0;  // of their span's tokens, which one the first is
  MediaGrid grid = {};      // the whole span's
};

// Whose contents a block has: a group's of layers, or a part of a recurrent state.
inline constexpr std::int32_t kStateGroup = -1;

// A whole block of the arena and a buffer of as many bytes, which belongs to the strand until the step is back. What the group, or the
// state, does not use of its blocks is zero in the buffer. Where a model guesses for the large one, what it has of the same positions lies behind
// (LanguageModel::saved_bytes).
struct BlockCopy {
  std::int32_t block = 0;
  std::byte* bytes = nullptr;
  std::int32_t group = 0;  // or kStateGroup
  std::int32_t part = 0;   // of a state: which of its blocks
};

// Two blocks of a group that must hold the same, where the group uses them.
struct BlockCheck {
  std::int32_t block = 0;
  std::int32_t other = 0;
  std::int32_t group = 0;
};

// One block of the arena copied to another.
struct BlockFork {
  std::int32_t from = 0;
  std::int32_t to = 0;
};

// A copy of a row's state as it is after positions [0, end), where position < end <= position + count. Those of a row are in ascending order.
// A row that verifies may have one, at kBehindRow: wherever it turns out to end.
inline constexpr std::int32_t kBehindRow = -1;
struct StateSnapshot {
  std::int32_t end = 0;
  std::uint32_t block_begin = 0;  // into StepPlan::blocks
};

// A step works off saves, then checks, then forks in their order, then loads, then what is given back, then rows. So a block that the plan gives to a new owner can
// still be saved, checked or copied, and rows read what was loaded. No fork reads or writes what the same plan loads. A plan may have no rows.
struct StepPlan {
  std::uint64_t id = 0;
  std::vector<BlockCopy> saves;  // from the arena to the buffer
  std::vector<BlockCheck> checks;
  std::vector<BlockFork> forks;
  std::vector<BlockCopy> loads;          // from the buffer to the arena
  std::vector<std::int32_t> given_back;  // blocks that nobody uses: their memory is the system's until they are written to again
  std::vector<SlotStart> starts;         // applied before the rows
  std::vector<StepRow> rows;             // at most one for a slot
  std::vector<StateSnapshot> snapshots;
  std::vector<GivenVectors> given;
  std::vector<TokenId> tokens;
  std::vector<std::int32_t> blocks;

  // Of the strand, which has it while the plan runs: to be called between two layers, where other work may be done. Null: there is none.
  const std::function<void()>* between_layers = nullptr;

  bool moves_blocks() const { return !saves.empty() || !checks.empty() || !loads.empty() || !given_back.empty(); }

  void clear() {
    saves.clear();
    checks.clear();
    forks.clear();
    loads.clear();
    given_back.clear();
    starts.clear();
    rows.clear();
    snapshots.clear();
    given.clear();
    tokens.clear();
    blocks.clear();
    between_layers = nullptr;
  }
};

// The log-probability of a prompt token.
struct ScoredToken {
  TokenId token = 0;
  float logprob = 0.0F;
  std::uint32_t top_begin = 0;  // into StepResult::top
  std::uint32_t top_count = 0;
};

// A token of an answer.
struct AnswerToken {
  TokenId token = 0;
  float logprob = 0.0F;
  std::uint32_t top_begin = 0;  // into StepResult::top
  std::uint32_t top_count = 0;
  DraftSource source = DraftSource::kNgram;  // of the guess that it was compared with
  float drawn_logprob = 0.0F;                // Token's
};

// What one row with an output or with `scored` gave. A row whose slot had finished in an earlier step is skipped: `ran` is false.
// `finished` without `sampled` is a failure of this sequence alone: `reason` is kError, no token could be chosen, or choosing it threw
// `failure`.
struct RowResult {
  SlotId slot = 0;
  bool ran = false;
  bool sampled = false;
  bool ruled_out = false;  // nothing was sampled: the request's own rules leave none of the model's tokens
  bool finished = false;   // by end-of-sequence, stop token or max_tokens, decided on the strand
  FinishReason reason = FinishReason::kStop;
  TokenId token = 0;
  float logprob = 0.0F;
  std::uint32_t top_begin = 0;  // into StepResult::top
  std::uint32_t top_count = 0;
  float drawn_logprob = 0.0F;      // Token's
  float mirostat_mu = 0.0F;        // state after this token, for SlotStart
  std::uint32_t scored_begin = 0;  // into StepResult::scored; the row's `scored` of them, in order
  std::uint32_t scored_count = 0;
  std::uint32_t vector_begin = 0;  // into StepResult::vectors
  std::uint32_t vector_count = 0;  // its width; 0: none
  // Of kVerify: where the row's first token was, how many drafted ones followed it, and the tokens that the right ones among these add
  // after `token`. Positions [0, position + 1 + more_count) are what the cache holds of the sequence then. StepResult::more has places for
  // all that were drafted, of which the wrong ones say nothing but their source.
  std::int32_t position = 0;
  std::int32_t drafted = 0;
  bool is_cut = false;           // a model had guessed more behind these, which the constraint rules out
  std::uint32_t more_begin = 0;  // into StepResult::more
  std::uint32_t more_count = 0;
  std::exception_ptr failure = nullptr;
};

// What a model that guesses took of a step: `passes` one after the other, in which `rows` sequences took part at first.
struct DraftWork {
  double seconds = 0.0;
  std::int32_t passes = 0;
  std::int32_t rows = 0;
  std::int32_t read = 0;  // tokens of their texts that it computed before it guessed
};

struct StepResult {
  std::uint64_t id = 0;
  std::vector<RowResult> rows;  // in the order of the plan's rows
  std::vector<TokenLogprob> top;
  std::vector<std::uint32_t> unequal;  // indices of the plan's checks that found a difference
  std::vector<ScoredToken> scored;
  std::vector<AnswerToken> more;
  std::vector<float> vectors;
  std::exception_ptr draft_failure;  // guessing threw: some rows that verify had nothing to verify
  DraftWork draft_work;
  double seconds = 0.0;        // time on the strand, what was guessed with included
  std::exception_ptr failure;  // the step threw: no row has run, and saves and loads may be undone

  void clear() {
    rows.clear();
    top.clear();
    unequal.clear();
    scored.clear();
    more.clear();
    vectors.clear();
    draft_failure = nullptr;
    draft_work = {};
    seconds = 0.0;
    failure = nullptr;
  }
};

// Thrown by execute(), or in StepResult::failure, where it is known whose fault it is: the step's row of this slot.
class RowFailure : public std::runtime_error {
 public:
  RowFailure(SlotId failed, const std::string& what) : std::runtime_error(what), slot(failed) {}
  SlotId slot;
};

// Executes plans, one at a time, on the strand's thread. The scheduler's tests put a fake here.
// A row has a result when it has an output or `scored`; other rows may have one (with `sampled` false) or none.
// When execute() throws, every slot that the plan names counts as finished: the next plan, posted before the failure was known, may
// still have decode rows of them, which are skipped.
class StepExecutor {
 public:
  virtual ~StepExecutor() = default;
  virtual void execute(const StepPlan& plan, StepResult& result) = 0;
};

}  // namespace braid::step
