// `braid split` and `braid merge`: a GGUF file in several parts, and back.
#include "app/commands/commands.h"
#include "app/commands/written_file.h"
#include "app/load_progress.h"
#include "files/gguf_parts.h"

#include <cstdlib>
#include <fmt/format.h>

namespace braid::app {
namespace {

Result<std::vector<std::string>> split(const SplitCommandOptions& options) {
  const auto file = files::GgufFile::open(options.input);
  if (!file) return file.error();
  files::PartBounds bounds;
  if (options.most_bytes) bounds.bytes = *options.most_bytes;
  if (options.most_tensors) bounds.tensors = static_cast<std::uint64_t>(*options.most_tensors);
  for (const std::string& path : files::part_paths(*file, options.output, bounds))
    if (const auto free = check_output(options.input, path, options.force); !free) return free.error();
  LoadProgress progress;
  return files::split_model(*file, options.output, bounds,
                            [&](std::string_view what, std::uint64_t done, std::uint64_t total) { progress.show(what, done, total); });
}

Result<void> merge(const MergeCommandOptions& options) {
  if (const auto free = check_output(options.input, options.output, options.force); !free) return free.error();
  const auto file = files::GgufFile::open(options.input);
  if (!file) return file.error();
  LoadProgress progress;
  return files::merge_model(*file, options.output,
                            [&](std::string_view what, std::uint64_t done, std::uint64_t total) { progress.show(what, done, total); });
}

}  // namespace

int run_command(const SplitCommandOptions& options) {
  const auto paths = split(options);
  if (!paths) return report(paths.error());
  for (const std::string& path : *paths) print_written(path);
  return EXIT_SUCCESS;
}

int run_command(const MergeCommandOptions& options) {
  if (const auto merged = merge(options); !merged) return report(merged.error());
  print_written(options.output);
  return EXIT_SUCCESS;
}

}  // namespace braid::app
