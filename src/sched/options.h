// What the composition root decides about scheduling.
#pragma once

#include "braid/generation_request.h"
#include "braid/result.h"
#include "step/visibility.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace braid::sched {

struct SchedulerOptions {
  std::int32_t max_batch = 256;          // sequences that run at once; also the number of sampling slots on the strand
  std::int32_t max_batch_tokens = 4096;  // tokens of one step, decode rows included; more than max_batch
  std::int32_t prefill_slice_ms = 35;    // what prefill may add to a step in which sequences decode
  std::int32_t target_itl_ms = 0;        // rows and slices are chosen so that a step takes about so long; 0: they are not
  std::int32_t draft_tokens = 0;         // most that the executor drafts for a sequence in a step, and verifies; 0: it drafts none
  bool draft_always = false;             // as many as a request allows, whether they pay or not
  std::int32_t max_waiting = 16384;      // requests not yet admitted; the next one is refused with kOverloaded
  std::chrono::milliseconds priority_ageing{
      10'000};                               // a request that has waited so much longer goes before one of the next better priority
  std::int32_t context_length = 0;           // tokens, prompt and answer together
  std::int32_t block_tokens = 16;            // positions of one KV block
  std::int32_t blocks = 0;                   // KV blocks of the pool
  std::int32_t most_blocks = 0;              // that the arena has, and the pool may grow to; no others where it is less
  std::int32_t stream_capacity = 64;         // tokens a client may lag behind before its sequence pauses
  std::vector<step::Visibility> groups{{}};  // of layers that see alike, those that see everything first: see Groups
  std::vector<double> block_use;             // for each group, the share of a block's bytes that it uses; empty: all of them
  std::int32_t state_blocks = 0;             // of a sequence's recurrent state; 0: the model has none
  std::int32_t state_interval = 512;         // positions between checkpoints of states; 0: only at the ends of prompts and answers
  std::int32_t most_state_blocks =
      std::numeric_limits<std::int32_t>::max();  // that all checkpoints may take; fewer than one does: none is kept
  // Longer sequences, in tokens, are computed with other angles of positions from their beginning (LongRoPE): what becomes longer is computed
  // again; 0: none are.
  std::int32_t stretch_beyond = 0;
  bool media_whole = false;                       // tokens of a span of media see each other both ways: no slice ends among them
  std::vector<TokenId> turn_ends;                 // behind these tokens of a prompt, too: other prompts part from it there
  std::chrono::milliseconds stall_park{10'000};   // a sequence whose stream has been full for so long gives its blocks up
  std::chrono::milliseconds stall_drop{300'000};  // and one after so long is ended
  bool prefix_cache = true;                       // whether full blocks are found again by what they hold
  std::string kv_identity;                        // what keys and values depend on besides the sequence: see PrefixIndex
  std::size_t draft_bytes = 0;  // of a block on disk those at its end that a model which guesses has of it: no answer depends on them
  bool kv_verify = false;       // the prefix cache is written and compared with, never read
  bool disk_always = false;     // whether what the disk has is read even when computing it has been faster
  std::chrono::milliseconds restore_patience{2'000};  // with a disk that does not answer: then what it was to give is computed
  bool write_through = false;  // whether the disk tier, if any, gets blocks when they are full, not when they are evicted
};

// The first thing wrong with them, as a sentence that names the option.
std::optional<Error> find_fault(const SchedulerOptions& options);

}  // namespace braid::sched
