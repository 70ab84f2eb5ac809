#include "app/cli/serve/groups.h"
#include "app/option_types.h"

#include <fmt/format.h>

namespace braid::app {

void add_batch_options(CLI::App& app, BatchOptions& options) {
  add_integer(app, "--max-batch", options.max_batch, 1, 65536, "Sequences in one step");
  add_integer(app, "--max-batch-tokens", options.max_batch_tokens, 2, 1 << 20, "Tokens in one step");
  add_integer(app, "--prefill-slice-ms", options.prefill_slice_ms, 1, 60'000, "Milliseconds that prefill may add to a step that decodes");
  add_integer(
      app, "--target-itl-ms", options.target_itl_ms, 0, 60'000,
      "Milliseconds between two tokens of an answer, by which rows and slices of each step are chosen within the limits above; 0: none");
  add_integer(app, "--max-waiting", options.max_waiting, 1, 1 << 24, "Requests that may wait; more are answered with 429");
  add_duration(app, "--priority-ageing", options.priority_ageing,
               "A request that has waited so much longer goes before one of the next better priority");
  add_checkpoints(app, "--state-checkpoints", options.state_checkpoints, options.state_memory,
                  "Tokens between two recurrent states that are cached besides those at ends of turns, and memory of all: 512,2GiB");
  add_duration(app, "--stall-park", options.stall_park,
               "A client whose full stream it has not read for so long loses its KV memory, and nothing else");
  add_duration(app, "--stall-drop", options.stall_drop, "One that has not read it for so long loses its answer");
}

std::string batch_fault(const BatchOptions& options) {
  if (options.stall_drop < options.stall_park) return "--stall-drop must not be shorter than --stall-park";
  if (options.max_batch_tokens > options.max_batch) return {};
  return fmt::format("--max-batch-tokens {} must be more than --max-batch {}, or a full batch leaves no room for prompts",
                     options.max_batch_tokens, options.max_batch);
}

}  // namespace braid::app
