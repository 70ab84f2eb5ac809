#include "app/cli/commands.h"
#include "app/cli/model.h"
#include "app/option_types.h"

namespace braid::app {

CLI::App* add_plan(CLI::App& app, PlanOptions& options) {
  CLI::App* plan = app.add_subcommand("plan", "Show what each way to divide a model among machines takes: memory, and time for a token");
  plan->add_option("model", options.model.model, "A GGUF file or a Hugging Face folder")->required();
  add_integer(*plan, "--hosts", options.hosts, 1, 1024, "Most machines, each with one rank");
  add_size(*plan, "--bandwidth", options.bandwidth, "What a machine sends to another in a second; 1.25GB is a network of 10 Gbit");
  add_integer(*plan, "--latency", options.latency_us, 1, 1'000'000,
              "Microseconds from one machine to another, both ends' software included");
  add_size(*plan, "--memory-bandwidth", options.memory_bandwidth, "What a machine's processors read from its memory in a second");
  add_model_options(*plan, options.model);
  return plan;
}

}  // namespace braid::app
