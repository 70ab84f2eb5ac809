#include "app/cli/commands.h"
#include "app/cli/serve/groups.h"
#include "app/config_file.h"

#include <fmt/format.h>
#include <iterator>
#include <string>

namespace braid::app {
namespace {

constexpr std::string_view kHead =
    "# Options of `braid serve`. The command line comes first, then BRAID_... variables of the environment (BRAID_MAX_BATCH), then this "
    "file.\n"
    "# `braid config check FILE` says whether it is right. Each option stands here with its default; where that is empty, it has none.\n";

std::string value_of(const CLI::Option& option) {
  if (option.count() == 0) return option.get_items_expected_max() == 0 ? "false" : option.get_default_str();
  if (option.get_items_expected_max() == 0) return "true";
  const std::vector<std::string>& values = option.results();
  if (values.size() == 1) return fmt::format("'{}'", values.front());
  return fmt::format("['{}']", fmt::join(values, "', '"));
}

std::string_view name_of(Origin origin) {
  switch (origin) {
    case Origin::kDefault:
      return "default";
    case Origin::kFile:
      return "file";
    case Origin::kEnvironment:
      return "environment";
    case Origin::kCommandLine:
      return "command line";
  }
  return "";
}

// What the option is for, as comments of at most a hundred columns.
void append_comment(std::string& out, const std::string& text) {
  constexpr std::size_t kColumns = 100;
  std::size_t column = kColumns + 1;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    if (column + end - begin + 1 > kColumns) {
      out += out.empty() || out.back() == '\n' ? "  #" : "\n  #";
      column = 3;
    }
    out.append(" ").append(text, begin, end - begin);
    column += end - begin + 1;
    begin = end + 1;
  }
  out += '\n';
}

std::string commented(CLI::App& serve) {
  std::string out(kHead);
  const CLI::Option* model = serve.get_option("model");
  fmt::format_to(std::back_inserter(out), "\n# {}\n# model: []\n", model->get_description());
  for (const CLI::App* group : sections_of(serve)) {
    fmt::format_to(std::back_inserter(out), "\n{}:\n", section_name(*group));
    for (const CLI::Option* option : group->get_options()) {
      append_comment(out, option->get_description());
      fmt::format_to(std::back_inserter(out), "  # {}: {}\n", key_of(*option), value_of(*option));
    }
  }
  return out;
}

std::string settled(CLI::App& serve, const Configuration& configuration) {
  std::string out = fmt::format("# file: {}\n", configuration.file.empty() ? "none" : configuration.file);
  for (const std::string& doubt : configuration.doubts) fmt::format_to(std::back_inserter(out), "# {}\n", doubt);
  const auto append = [&](const CLI::Option& option) {
    const auto origin = configuration.origins.find(&option);
    if (origin == configuration.origins.end()) return;
    const std::string value = value_of(option);
    fmt::format_to(std::back_inserter(out), "{}{}: {}  # {}\n", value.empty() ? "# " : "", key_of(option), value, name_of(origin->second));
  };
  append(*serve.get_option("model"));
  for (const CLI::App* group : sections_of(serve))
    for (const CLI::Option* option : group->get_options()) append(*option);
  return out;
}

}  // namespace

CLI::App* add_config(CLI::App& app, ConfigOptions& options) {
  CLI::App* config = app.add_subcommand("config", "Look at the options of braid serve where they come from a file");
  const auto add = [&](const char* name, const char* help, ConfigOptions::Action action) {
    CLI::App* command = config->add_subcommand(name, help);
    command->add_option("file", options.file, "The file; where it is left out, the one that braid serve would read");
    command->callback([&options, action] { options.action = action; });
  };
  add("check", "Say whether a file is right", ConfigOptions::Action::kCheck);
  add("show", "Each option with its value, and where that comes from", ConfigOptions::Action::kShow);
  CLI::App* init = config->add_subcommand("init", "Write a file with every option as a comment");
  init->add_option("file", options.file, "Where to; it must not be there yet. Standard output if it is left out");
  init->callback([&options] { options.action = ConfigOptions::Action::kInit; });
  config->require_subcommand(1);
  return config;
}

Result<std::string> config_text(const ConfigOptions& options) {
  CLI::App app("braid", "braid");
  ServeOptions values;
  std::string named;
  CLI::App* serve = add_serve(app, values, named);
  if (options.action == ConfigOptions::Action::kInit) return commented(*serve);
  try {
    const Configuration configuration = configure(*serve, options.file);
    if (const std::string fault = value_fault(*serve); !fault.empty()) return invalid_argument(fault);
    settle_listen_options(*serve, values);
    if (const std::string fault = serve_fault(values); !fault.empty()) return invalid_argument(fault);
    if (options.action == ConfigOptions::Action::kShow) return settled(*serve, configuration);
    std::string told;
    for (const std::string& doubt : configuration.doubts) told += doubt + '\n';
    return told + (configuration.file.empty() ? std::string("there is no file: all options have their defaults\n")
                                              : fmt::format("{} is right\n", configuration.file));
  } catch (const CLI::ParseError& e) {
    return invalid_argument(e.what());
  }
}

}  // namespace braid::app
