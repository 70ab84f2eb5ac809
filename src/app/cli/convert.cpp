#include "app/cli/commands.h"
#include "app/option_types.h"

namespace braid::app {

CLI::App* add_convert(CLI::App& app, ConvertCommandOptions& options) {
  CLI::App* convert = app.add_subcommand("convert", "Write a Hugging Face folder as a GGUF file");
  convert->add_option("input", options.input, "A Hugging Face folder, or a GGUF file")->required();
  convert->add_option("output", options.output, "The GGUF file to write")->required();
  add_file_type(*convert, "--type", options.type, "What matrices become: auto (as they are), f32, f16, bf16 or q8_0");
  convert->add_flag("--force", options.force, "Writes over a file that is there");
  return convert;
}

}  // namespace braid::app
