#include <app/cli/serve/groups.h>
#include <app/option_types.h>

#include <fmt/format.h>

namespace braid::app {

void add_batch_options(CLI::App& app, BatchOptions& options) {
  add_integer(app, "--max-batch", options.max_batch, 1, 65536, "Sequences in one step");
  add_integer(app, "--max-batch-tokens", options.max_batch_tokens, 2, 1 << 20, "Tokens in one step");
  add_integer(app, "--prefill-slice-ms", options.prefill_slice_ms, 1, 60'000, "Milliseconds that prefill may add to a step that decodes");
  add_integer(app, "--max-waiting", options.max_waiting, 1, 1 << 24, "Requests that may wait; more are answered with 429");
  add_duration(app, "--priority-ageing", options.priority_ageing,
               "A request that has waited so much longer goes before one of the next better priority");
}

std::string batch_fault(const BatchOptions& options) {
  if (options.max_batch_tokens > options.max_batch) return {};
  return fmt::format("--max-batch-tokens {} must be more than --max-batch {}, or a full batch leaves no room for prompts",
                     options.max_batch_tokens, options.max_batch);
}

}  // namespace braid::app
