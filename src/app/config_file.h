// Where options come from besides the command line: variables of the environment, and a YAML file of the same keys.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

namespace braid::app {

enum class Origin { kDefault, kFile, kEnvironment, kCommandLine };

struct Configuration {
  std::string file;                              // that was read; empty: none
  std::map<const CLI::Option*, Origin> origins;  // of all options of the command
  std::vector<std::string> doubts;               // sentences on variables of the environment that look misspelt
};

// Sets the options of a parsed command that the command line left alone: from BRAID_… variables ("max-batch": BRAID_MAX_BATCH), then from
// the file `named`. Where that is empty, from BRAID_CONFIG's or the first that is there of ~/.config/braid/braid.yaml and
// /etc/braid/braid.yaml; "off" is no file. A file has the options as keys ("max-batch: 64"), at the top or in the section of their group
// of the help ("batching:"). Throws CLI::ParseError with file, line and reason.
Configuration configure(CLI::App& command, const std::string& named);

// Each option's text by its key: what was said of it, several values between commas; empty: nothing.
std::map<std::string, std::string> settings_of(CLI::App& command);

// The groups of a command's options, in the order of its help.
std::vector<CLI::App*> sections_of(CLI::App& command);

// The section of a group of options: its title's first word in lower case.
std::string section_name(const CLI::App& group);

// An option's key in files: its name without dashes.
std::string key_of(const CLI::Option& option);

// "BRAID_MAX_BATCH" of "max-batch".
std::string variable_of(const std::string& key);

}  // namespace braid::app
