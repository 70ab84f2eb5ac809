// One request on its way through the scheduler. Loop only.
#pragma once

#include "braid/generation_request.h"
#include "braid/prefetch.h"
#include "cache/block_table.h"
#include "cache/prefix_index.h"
#include "cache/sequence_view.h"
#include "sched/draft_pace.h"
#include "sched/groups.h"
#include "sched/holdings.h"
#include "sched/progress.h"
#include "sched/rank.h"
#include "sched/recurrent_state.h"
#include "sched/token_stream.h"
#include "step/step.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace braid::sched {

class SequenceTicket;
struct Lookup;
struct Restoration;
struct Sequence;
using SequenceMap = std::map<Rank, Sequence>;

// Waiting → (Restoring →) Prefill → Decode → Done, with the detours Stalled and Preempted, which both lead back to Waiting, and
// Retrying, which leads back to Prefill.
// A sequence that leaves the batch takes its phase at once, so that no step planned from then on contains it, and keeps its slot
// and blocks until the last posted step that names it has come back.
enum class SequencePhase {
  kWaiting,    // in the queue, or until its leader has computed what both begin with; holds blocks only when it has been stalled or,
               // at the front, those of its cached prefix, or preempted with a recurrent state
  kRestoring,  // in the batch; what of its prefix lies on disk is being loaded
  kPrefill,    // its known tokens are being put into the cache
  kDecode,     // its next input is what it sampled last
  kStalled,    // the consumer is too far behind; keeps its blocks while nobody needs them more, and for a while
  kParked,     // the same, without blocks
  kRetrying,   // a step that names it threw; goes on from what it is sure of when the last one is back and it is not held (Quarantine)
  kPreempted,  // gives up its blocks; its tokens so far become its prompt
  kDone,       // the consumer has its Finish, or went away
};

constexpr const char* phase_name(SequencePhase phase) {
  switch (phase) {
    case SequencePhase::kWaiting:
      return "waiting";
    case SequencePhase::kRestoring:
      return "restoring";
    case SequencePhase::kPrefill:
      return "prefill";
    case SequencePhase::kDecode:
      return "decode";
    case SequencePhase::kStalled:
      return "stalled";
    case SequencePhase::kParked:
      return "parked";
    case SequencePhase::kRetrying:
      return "retrying";
    case SequencePhase::kPreempted:
      return "preempted";
    case SequencePhase::kDone:
      return "done";
  }
  return "unknown";
}

// What a row adds to its sequence.
inline Advance advance_of(const step::StepRow& row) {
  const std::int32_t tokens = row.samples() ? 1 : 0;
  return {row.count, row.count + row.drafts, tokens, tokens + row.drafts};
}

struct Sequence {
  Sequence(const Rank& its_rank, GenerationRequest asked, std::int32_t answer_room, cache::BlockPool& pool, const Groups& groups)
      : rank(its_rank), tokens(std::move(asked.prompt)), prompt_tokens(static_cast<std::int32_t>(tokens.size())),
        may_tell_revision(asked.tells_revisions), progress(groups.block_tokens()), reported(asked.prompt_logprobs < 0 ? prompt_tokens : 0),
        stop(std::move(asked.stop)), media_grids(std::move(asked.media_grids)),
        state(groups.has_states() ? std::make_unique<RecurrentState>(pool) : nullptr), fork_source(pool), blocks(pool, groups),
        adapter(std::move(asked.adapter)), request(rest_of(std::move(asked))) {
    stop.max_tokens = answer_room;
  }
  static std::unique_ptr<const GenerationRequest> rest_of(GenerationRequest asked) {
    asked.reservation.reset();  // its place is taken
    return std::make_unique<const GenerationRequest>(std::move(asked));
  }

  // Its answer may be guessed from others to the same client, and others from it.
  bool shares_answers() const {
    return request->speculation.method == DraftMethod::kAuto || request->speculation.method == DraftMethod::kSuffix;
  }
  // What it knows, for the prefix cache.
  cache::SequenceView view() const {
    return {{stretched_revision ? *stretched_revision : adapter.revision, request->cache_salt}, tokens, request->media};
  }
  // It has the angles of long sequences from now on, and holds nothing that has others.
  void stretch() { stretched_revision = adapter.revision + " stretched"; }
  // StepRow::shift of a row that begins there.
  std::int32_t rotary_shift(std::int32_t position) const {
    std::int32_t shift = 0;
    for (std::size_t i = 0; i < media_grids.size() && request->media[i].first + request->media[i].count <= position; ++i)
      shift += media_grids[i].shift();
    return shift;
  }
  // Has on its way what each step needs of it.
  void prefetch() const {
    const auto* const begin = reinterpret_cast<const std::byte*>(this);
    prefetch_lines(begin, static_cast<std::size_t>(reinterpret_cast<const std::byte*>(&adapter + 1) - begin));
  }
  std::int32_t known() const { return static_cast<std::int32_t>(tokens.size()); }
  std::int32_t generated() const { return known() - prompt_tokens; }
  // Its consumer is too far behind.
  bool is_stalled() const { return phase == SequencePhase::kStalled || phase == SequencePhase::kParked; }
  // In the batch, and may be part of the next plan.
  bool active() const { return phase == SequencePhase::kRestoring || phase == SequencePhase::kPrefill || phase == SequencePhase::kDecode; }
  // It gives up its slot and blocks when the last posted step that names it has come back.
  bool is_leaving() const { return phase == SequencePhase::kPreempted || phase == SequencePhase::kDone; }
  // What it sampled last is all that is to be computed, but the strand has to be told: after a failed step, a pause or a preemption.
  bool takes_up_decoding() const { return phase == SequencePhase::kPrefill && generated() > 0 && progress.planned() == known() - 1; }
  // Its answer takes rows of its own; of a single token, or none, the prompt's last row makes it.
  bool decodes() const { return stop.max_tokens > 1; }
  // Its next token can be planned: what it has and what is on its way does not reach its limit yet.
  bool may_decode() const { return phase == SequencePhase::kDecode && generated() + progress.least_pending() < stop.max_tokens; }
  // Positions that it will ever have in the cache: the last token of the answer is never written there.
  std::int32_t most_positions() const { return prompt_tokens + std::max(stop.max_tokens, 1) - 1; }
  // Whether it still holds the block that the next one is to be published after. A window may have passed it.
  bool can_publish() const { return progress.published() == 0 || blocks[0][progress.published() - 1] != cache::BlockTable::kAbsent; }
  // The last block that others can find.
  cache::BlockId last_published() const {
    return progress.published() > 0 ? blocks[0][progress.published() - 1] : cache::PrefixIndex::kNoParent;
  }
  // Prompt tokens whose log-probabilities are still to come.
  bool awaits_prompt_logprobs() const { return reported < prompt_tokens; }
  // A part of these is told, or on its way, and the rest is not.
  bool has_told_of_prompt() const { return awaits_prompt_logprobs() && (reported > 0 || progress.is_in_flight()); }
  // What its next rows compute with.
  const AdapterUse& current_use() const { return next_adapter ? *next_adapter : adapter; }
  // Its vector is made of what all rows give, from the first one on.
  bool pools_all() const { return request->pooling != Pooling::kNone && request->pooling != Pooling::kLast; }
  // All rows of the prompt must run: it takes nothing from the cache.
  bool computes_all() const { return awaits_prompt_logprobs() || pools_all(); }
  // All that it holds of the pool.
  std::int32_t held_blocks() const { return blocks.present() + fork_source.present() + (state != nullptr ? state->source.present() : 0); }
  // A checkpoint that it can go on from when it is preempted. All of them together take no more than an eighth of what it holds, or two states.
  void keep_checkpoint(std::int32_t end, cache::BlockTable checkpoint) { state->keep({end, std::move(checkpoint)}, blocks.present() / 8); }
  // Blocks for one more of these, made at `end`: to spare or, where none are, those of one that nobody else holds.
  std::optional<cache::BlockTable> spare_state(std::int32_t end) const {
    if (auto spare = blocks.spare_state(); spare || !state->let_go_of_own(end)) return spare;
    return blocks.spare_state(true);
  }
  // Whether the next position has no block yet.
  bool needs_block(std::int32_t block_tokens) const {
    return blocks.places() * block_tokens < std::min(progress.most() + 1, most_positions());
  }

  const Rank rank;
  // What each step reads or writes of it comes first and lies together: of thousands of sequences every line more is one more from memory.
  std::vector<TokenId> tokens;  // prompt and accepted answer
  const std::int32_t prompt_tokens;
  SequencePhase phase = SequencePhase::kWaiting;
  SequenceTicket* ticket = nullptr;  // null once finished or abandoned
  step::SlotId slot = 0;             // valid while in the batch
  bool starts = false;               // the strand has not heard of the slot's new owner yet
  bool is_void = false;              // when a step throws (Quarantine): what steps that are still out say of it does not count
  bool has_run = false;              // and whether it has been in a step that came back
  bool may_tell_revision = false;    // its next token says what made it, unless the one before has said the same
  Progress progress;
  std::int32_t reported = 0;              // leading prompt tokens whose log-probabilities the consumer has, or does not ask for
  float mirostat_mu = 0.0F;               // the sampling state after the last token that has come back
  std::optional<cache::PrefixKey> leads;  // while it is being prefilled (SharedPrefill): the key of what it computes next
  StopRules stop;                         // max_tokens cut to what fits
  const std::vector<MediaGrid> media_grids;
  const std::unique_ptr<RecurrentState> state;  // null: the model has none
  cache::BlockTable fork_source;  // for each group the block that the first row copies the beginning of its first block from; empty: none
  Holdings blocks;
  AdapterUse adapter;

  std::optional<std::string> stretched_revision;  // of the adapter with the angles of long sequences, where it has these
  DraftHistory drafts;
  const std::unique_ptr<const GenerationRequest> request;  // but for what has a place of its own here, and its reservation

  std::shared_ptr<Lookup> lookup;             // of its prefix, by those who know; null: nobody is asked
  std::shared_ptr<Restoration> restoration;   // of its prefix from disk; null: none
  step::RecentAnswers recent;                 // when it was submitted
  cache::PrefixKey saved_key;                 // of the last block that the disk tier has been offered
  std::int32_t passes = 0;                    // smaller ones admitted before it while it was the first in line and lacked blocks
  std::optional<std::int32_t> cached_tokens;  // of the prompt, found in the prefix cache; set when it is first admitted

  std::chrono::steady_clock::time_point arrival;
  std::optional<double> queue_seconds;                  // until it was first admitted
  std::chrono::steady_clock::time_point stalled_since;  // while it is stalled or parked
  struct Cancelled {
    std::chrono::steady_clock::time_point when;
    std::uint64_t steps;  // that had come back by then
  };
  std::optional<Cancelled> cancelled;

  std::optional<AdapterUse> next_adapter;            // to take the other's place when nothing is in flight
  std::int32_t weight_changes = 0;                   // how often that has been asked for
  std::shared_ptr<const std::string> told_revision;  // of the last token, if they are told

  // When a step throws: see Quarantine, which knows more of those under suspicion.
  bool held = false;                        // left out while others are tried
  std::optional<std::int32_t> alone_after;  // what comes after so many positions is to be planned in a step of its own

  // See SharedPrefill.
  Sequence* leader = nullptr;  // who computes what it waits for, or null
  std::int32_t awaited = 0;    // how many of the leader's positions

  SequenceMap* home = nullptr;  // the map it is in
  SequenceMap::iterator self;   // and its node there: nodes are moved between maps, a sequence never moves in memory
};

// Gives back the blocks that no token from the least planned position on sees. Those that steps which are still out compute stay, and the
// one before them: they are to be published after it, also where a slice is longer than the window.
inline void drop_invisible(Sequence& sequence, const Groups& groups) {
  if (!groups.any_window()) return;
  const bool computes = sequence.progress.is_in_flight() && sequence.phase != SequencePhase::kRestoring;
  const std::int32_t kept = computes ? sequence.progress.computed() / groups.block_tokens() - 1 : std::numeric_limits<std::int32_t>::max();
  sequence.blocks.drop_invisible(sequence.progress.least(), kept);
}

// The same, then takes new ones, as far as there are any, until there are so many places.
inline void move_window(Sequence& sequence, const Groups& groups, std::int32_t places) {
  drop_invisible(sequence, groups);
  sequence.blocks.extend(places);
}

}  // namespace braid::sched
