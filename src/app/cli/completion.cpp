// `braid completion`: what a shell needs to complete commands, options and names of models.
#include "app/cli/commands.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace braid::app {
namespace {

// Of each command its long options, those of its groups too.
void gather_options(const CLI::App& command, std::set<std::string>& options) {
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) options.insert("--" + name);
  for (const CLI::App* group : command.get_subcommands([](const CLI::App* one) { return one->get_name().empty(); }))
    gather_options(*group, options);
}

std::map<std::string, std::string> options_of_commands(const CLI::App& app) {
  std::map<std::string, std::string> commands;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App* one) { return !one->get_name().empty(); })) {
    std::set<std::string> options;
    gather_options(*command, options);
    commands.emplace(command->get_name(), fmt::format("{}", fmt::join(options, " ")));
  }
  return commands;
}

std::vector<std::string> names_of(const std::map<std::string, std::string>& commands) {
  std::vector<std::string> names;
  for (const auto& [name, options] : commands) names.push_back(name);
  return names;
}

constexpr std::string_view kNamed = "run|show|stop|rm|cp|push";  // commands that take the name of a model that is here

std::string for_bash(const std::map<std::string, std::string>& commands) {
  std::string cases;
  for (const auto& [name, options] : commands) cases += fmt::format("    {}) options=\"{}\" ;;\n", name, options);
  return fmt::format(
      "_braid() {{\n"
      "  local word=\"${{COMP_WORDS[COMP_CWORD]}}\" command=\"${{COMP_WORDS[1]}}\" options=\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W \"{}\" -- \"$word\"))\n"
      "    return\n"
      "  fi\n"
      "  case \"$command\" in\n{}  esac\n"
      "  case \"$word\" in\n"
      "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")); return ;;\n"
      "  esac\n"
      "  case \"$command\" in\n"
      "    {})\n"
      "      local IFS=$'\\n'\n"
      "      COMPREPLY=($(compgen -W \"$(braid list --names 2>/dev/null)\" -- \"$word\"))\n"
      "      type __ltrim_colon_completions >/dev/null 2>&1 && __ltrim_colon_completions \"$word\" ;;\n"
      "  esac\n"
      "  [ ${{#COMPREPLY[@]}} -gt 0 ] || COMPREPLY=($(compgen -f -- \"$word\"))\n"
      "}}\n"
      "complete -o filenames -F _braid braid\n",
      fmt::join(names_of(commands), " "), cases, kNamed);
}

std::string for_zsh(const std::map<std::string, std::string>& commands) {
  std::string cases;
  for (const auto& [name, options] : commands) cases += fmt::format("    {}) compadd -- {} ;;\n", name, options);
  return fmt::format(
      "#compdef braid\n"
      "_braid() {{\n"
      "  if (( CURRENT == 2 )); then\n"
      "    compadd -- {}\n"
      "    return\n"
      "  fi\n"
      "  if [[ $words[CURRENT] == -* ]]; then\n"
      "    case $words[2] in\n{}    esac\n"
      "    return\n"
      "  fi\n"
      "  case $words[2] in\n"
      "    {}) compadd -- ${{(f)\"$(braid list --names 2>/dev/null)\"}} ;;\n"
      "  esac\n"
      "  _files\n"
      "}}\n"
      "compdef _braid braid\n",
      fmt::join(names_of(commands), " "), cases, kNamed);
}

std::string for_fish(const std::map<std::string, std::string>& commands) {
  std::string lines = fmt::format("complete -c braid -n __fish_use_subcommand -f -a '{}'\n", fmt::join(names_of(commands), " "));
  for (const auto& [name, options] : commands)
    for (std::string_view rest = options; !rest.empty();) {
      const std::string_view option = rest.substr(0, rest.find(' '));
      lines += fmt::format("complete -c braid -n '__fish_seen_subcommand_from {}' -l {}\n", name, option.substr(2));
      rest.remove_prefix(std::min(rest.size(), option.size() + 1));
    }
  std::string named(kNamed);
  std::replace(named.begin(), named.end(), '|', ' ');
  return lines + fmt::format("complete -c braid -n '__fish_seen_subcommand_from {}' -a '(braid list --names 2>/dev/null)'\n", named);
}

}  // namespace

CLI::App* add_completion(CLI::App& app, std::string& shell) {
  CLI::App* completion = app.add_subcommand("completion", "Print what a shell needs to complete commands and names of models");
  completion->add_option("shell", shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion->footer("In ~/.bashrc: eval \"$(braid completion bash)\"");
  return completion;
}

std::string completion_script(const CLI::App& app, const std::string& shell) {
  const std::map<std::string, std::string> commands = options_of_commands(app);
  return shell == "bash" ? for_bash(commands) : shell == "zsh" ? for_zsh(commands) : for_fish(commands);
}

}  // namespace braid::app
