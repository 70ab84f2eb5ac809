#include "app/cli/commands.h"
#include "app/cli/model.h"
#include "app/option_types.h"

namespace braid::app {

CLI::App* add_info(CLI::App& app, ModelReportOptions& options) {
  CLI::App* info = app.add_subcommand("info", "Show a model's metadata, tensors and the memory it will take");
  info->add_option("model", options.model.model, "A GGUF file or a Hugging Face folder; the embedded model if not given");
  add_integer(*info, "--max-batch", options.max_batch, 1, 65536, "Sequences in one step");
  add_model_options(*info, options.model);
  add_chat_template(*info, options.model);
  return info;
}

}  // namespace braid::app
