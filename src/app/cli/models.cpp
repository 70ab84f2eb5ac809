// Commands that manage models.
#include "app/cli/commands.h"
#include "app/cli/model.h"

#include <utility>

namespace braid::app {
namespace {

using Action = ModelCommandOptions::Action;

constexpr char kExitCodes[] =
    "Exit codes: 0 done, 1 failed, 2 wrong command line, 3 no server could be reached, 4 there is no such model, 130 stopped by Ctrl-C.";

CLI::App* add(CLI::App& app, ModelCommandOptions& options, const char* name, Action action, const char* help) {
  CLI::App* command = app.add_subcommand(name, help);
  command->callback([&options, action] { options.action = action; });
  command->add_option("--host", options.host, "URL of the server; the one that has the data folder open, or none, if not given")
      ->type_name("URL")
      ->envname("BRAID_HOST");
  command->add_flag("--json", options.json, "Print JSON");
  add_data_options(*command, options.data);
  command->footer(kExitCodes);
  return command;
}

}  // namespace

std::vector<CLI::App*> add_model_commands(CLI::App& app, ModelCommandOptions& options) {
  std::vector<CLI::App*> commands;
  const auto command = [&](const char* name, Action action, const char* help) {
    return commands.emplace_back(add(app, options, name, action, help));
  };
  const auto named = [&](const char* name, Action action, const char* help, int least, int most) {
    CLI::App* added = command(name, action, help);
    added->add_option("name", options.names, "Name of a model, such as llama3.2:1b")->required(least > 0)->expected(least, most);
    return added;
  };
  constexpr int kMany = CLI::detail::expected_max_vector_size;  // "name..." in the help
  const auto with_insecure = [&](CLI::App* added) {
    added->add_flag("--insecure", options.insecure, "Plain HTTP, or a certificate that nobody vouches for, will do");
  };
  with_insecure(named("pull", Action::kPull, "Bring a model from a registry, or from a hub: hf.co/owner/name:quantisation", 1, 1));
  with_insecure(named("push", Action::kPush, "Send a model to the registry that its name is of", 1, 1));
  CLI::App* list = named("list", Action::kList, "List the models that are here, or those with these letters in their names", 0, 1);
  list->alias("ls");
  list->add_flag("--names", options.names_only, "Print their names and nothing else");
  CLI::App* show = named("show", Action::kShow, "Show what is known of a model", 1, 1);
  show->add_flag("--verbose", options.verbose, "Lists of its metadata and its tensors, too (with --json)");
  show->add_flag("--modelfile", options.modelfile_only, "Print the Modelfile that would make it");
  command("ps", Action::kRunning, "List the models that are loaded");
  named("stop", Action::kStop, "Unload models", 1, kMany);
  named("rm", Action::kRemove, "Remove models", 1, kMany);
  named("cp", Action::kCopy, "Give a model another name: cp OLD NEW", 2, 2);
  CLI::App* create = named("create", Action::kCreate, "Make a model from a Modelfile", 1, 1);
  create->add_option("-f,--file", options.modelfile, "The Modelfile; - for standard input")->type_name("FILE")->capture_default_str();
  create->add_option("-q,--quantize", options.quantize, "Round the weights to this mix, such as q4_k_m")->type_name("TYPE");
  command("status", Action::kStatus, "Tell whether a server runs, and what is here");
  command("key", Action::kKey, "Print this machine's public key, for registries with accounts; made the first time");
  return commands;
}

}  // namespace braid::app
