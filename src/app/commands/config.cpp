#include "app/cli/commands.h"
#include "app/commands/commands.h"

#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <fmt/format.h>
#include <string>
#include <unistd.h>

namespace braid::app {
namespace {

// A file that is there is somebody's work.
Result<void> write_new_file(const std::string& path, const std::string& text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0)
    return Error{ErrorCode::kIo, fmt::format("cannot make '{}': it is there already, or its folder cannot be written", path), ""};
  const bool written = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (::close(file) == 0 && written) return {};
  return Error{ErrorCode::kIo, fmt::format("cannot write '{}'", path), ""};
}

}  // namespace

int run_command(const ConfigOptions& options) {
  const Result<std::string> text = config_text(options);
  if (!text) return report(text.error());
  if (options.action != ConfigOptions::Action::kInit || options.file.empty()) {
    std::fputs(text->c_str(), stdout);
    return EXIT_SUCCESS;
  }
  const Result<void> written = write_new_file(options.file, *text);
  return written ? EXIT_SUCCESS : report(written.error());
}

}  // namespace braid::app
