#include "app/cli/commands.h"
#include "app/option_types.h"
#include "model/quantization_mix.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

namespace braid::app {
namespace {

std::string all_mixes() {
  std::vector<std::string_view> names;
  for (const model::QuantizationMix& mix : model::quantization_mixes()) names.push_back(mix.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

CLI::App* add_quantize(CLI::App& app, QuantizeCommandOptions& options) {
  CLI::App* quantize = app.add_subcommand("quantize", "Write a model with weights of fewer bits");
  quantize->add_option("input", options.input, "A GGUF file, or a Hugging Face folder")->required();
  quantize->add_option("output", options.output, "The GGUF file to write")->required();
  add_mix(*quantize, "--type", options.type, "How: " + all_mixes());
  quantize->add_option("--imatrix", options.importance, "An importance matrix: how much each input matters");
  quantize->add_flag("--pure", options.pure, "All matrices have the type itself: no mix");
  quantize->add_flag("--allow-requantize", options.allow_requantize, "Also rounds what is quantised already");
  quantize->add_flag("--force", options.force, "Writes over a file that is there");
  return quantize;
}

CLI::App* add_split(CLI::App& app, SplitCommandOptions& options) {
  CLI::App* split = app.add_subcommand("split", "Write a GGUF file as several parts");
  split->add_option("input", options.input, "A GGUF file")->required();
  split->add_option("output", options.output, "What the names of the parts begin with, before -00001-of-0000N.gguf")->required();
  CLI::Option_group* bounds = split->add_option_group("Bounds", "When a part is full");
  add_size(*bounds, "--max-size", options.most_bytes, "Bytes of tensors in a part");
  add_integer(*bounds, "--max-tensors", options.most_tensors, 1, 1 << 20, "Tensors in a part");
  bounds->require_option(1, 2);
  split->add_flag("--force", options.force, "Writes over files that are there");
  return split;
}

CLI::App* add_merge(CLI::App& app, MergeCommandOptions& options) {
  CLI::App* merge = app.add_subcommand("merge", "Write the parts of a GGUF file as one");
  merge->add_option("input", options.input, "The first part")->required();
  merge->add_option("output", options.output, "The GGUF file to write")->required();
  merge->add_flag("--force", options.force, "Writes over a file that is there");
  return merge;
}

}  // namespace braid::app
