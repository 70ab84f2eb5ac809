// `braid convert`: a folder of the hub as a GGUF file.
#include "model/convert.h"

#include "app/commands/commands.h"
#include "app/load_progress.h"
#include "app/loaded_model.h"
#include "app/units.h"
#include "kernels/select.h"
#include "model/families/families.h"
#include "text/ggml_tokenizer.h"

#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <system_error>

namespace braid::app {
namespace {

Result<std::uint64_t> convert(const ConvertCommandOptions& options) {
  std::error_code ignored;
  if (!options.force && std::filesystem::exists(options.output, ignored))
    return invalid_argument(fmt::format("{} is there already; --force writes over it", options.output));
  if (std::filesystem::equivalent(options.input, options.output, ignored)) return invalid_argument("input and output are the same file");
  Result<files::GgufFile> file = open_model(options.input);
  if (!file) return file.error();
  if (const auto described = model::describe_model(*file); !described) return described.error();
  if (file->version() == 0) {
    auto metadata = file->metadata();
    for (const std::string& warning : text::add_ggml_tokenizer(metadata)) spdlog::warn("{}", warning);
    file = file->with_metadata(std::move(metadata));
  }
  kernels::ThreadTeam team(kernels::usable_cpus());
  LoadProgress progress;
  const Result<void> written =
      model::write_model(*file, options.output, {.type = options.type}, team,
                         [&progress](std::string_view what, std::uint64_t done, std::uint64_t total) { progress.show(what, done, total); });
  if (!written) return written.error();
  return std::filesystem::file_size(options.output, ignored);
}

}  // namespace

int run_command(const ConvertCommandOptions& options) {
  const auto size = convert(options);
  if (!size) return report(size.error());
  fmt::print("{} written, {}\n", options.output, format_size(*size));
  return EXIT_SUCCESS;
}

}  // namespace braid::app
