// A YAML file of the same keys as a command's options: "max-batch: 64".
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace braid::app {

// Sets the options of a parsed command that the command line and the environment left alone. Throws CLI::ParseError with file, line
// and reason.
void apply_config_file(CLI::App& command, const std::string& path);

}  // namespace braid::app
