// `braid convert` and `braid quantize`: a model as a GGUF file.
#include "model/convert.h"

#include "app/commands/commands.h"
#include "app/commands/written_file.h"
#include "app/load_progress.h"
#include "app/loaded_model.h"
#include "app/units.h"
#include "kernels/select.h"
#include "model/families/families.h"
#include "text/ggml_tokenizer.h"

#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <optional>
#include <spdlog/spdlog.h>
#include <system_error>
#include <utility>

namespace braid::app {
namespace {

// The model, with the tokenizer of a folder as a file has it; for writing to `output`, which is not there unless `force` says that it may.
Result<files::GgufFile> open_for_writing(const std::string& input, const std::string& output, bool force) {
  if (const auto free = check_output(input, output, force); !free) return free.error();
  Result<files::GgufFile> file = open_model(input);
  if (!file) return file.error();
  if (const auto described = model::describe_model(*file); !described) return described.error();
  if (file->version() == 0) {
    auto metadata = file->metadata();
    for (const std::string& warning : text::add_ggml_tokenizer(metadata)) spdlog::warn("{}", warning);
    file = file->with_metadata(std::move(metadata));
  }
  return file;
}

// write(file, team, progress) writes to `output`.
template <class Write>
int write_file(const std::string& input, const std::string& output, bool force, const Write& write) {
  const Result<files::GgufFile> file = open_for_writing(input, output, force);
  if (!file) return report(file.error());
  kernels::ThreadTeam team(kernels::usable_cpus());
  Result<void> written;
  {
    LoadProgress progress;
    written = write(*file, team, [&](std::string_view what, std::uint64_t done, std::uint64_t total) { progress.show(what, done, total); });
  }
  if (!written) return report(written.error());
  print_written(output);
  return EXIT_SUCCESS;
}

}  // namespace

Result<void> check_output(const std::string& input, const std::string& output, bool force) {
  std::error_code ignored;
  if (!force && std::filesystem::exists(output, ignored))
    return invalid_argument(fmt::format("{} is there already; --force writes over it", output));
  if (std::filesystem::equivalent(input, output, ignored)) return invalid_argument("input and output are the same file");
  return {};
}

void print_written(const std::string& path) {
  std::error_code ignored;
  fmt::print("{} written, {}\n", path, format_size(std::filesystem::file_size(path, ignored)));
}

int run_command(const ConvertCommandOptions& options) {
  return write_file(options.input, options.output, options.force,
                    [&](const files::GgufFile& file, kernels::ThreadTeam& team, const files::Progress& progress) {
    return model::write_model(file, options.output, {.type = options.type}, team, progress);
  });
}

int run_command(const QuantizeCommandOptions& options) {
  std::optional<files::ImportanceMatrix> importance;
  if (!options.importance.empty()) {
    auto read = files::read_importance_matrix(options.importance);
    if (!read) return report(read.error());
    importance = std::move(*read);
  }
  const model::QuantizeOptions how{.mix = model::quantization_mix(options.type),
                                   .importance = importance ? &*importance : nullptr,
                                   .pure = options.pure,
                                   .from_quantized = options.allow_requantize};
  return write_file(options.input, options.output, options.force,
                    [&](const files::GgufFile& file, kernels::ThreadTeam& team, const files::Progress& progress) {
    return model::quantize_model(file, options.output, how, team, progress);
  });
}

}  // namespace braid::app
