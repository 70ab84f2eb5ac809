// `braid pull, list, show, ps, stop, rm, cp, create, push, status, key`.
#include "app/commands/commands.h"
#include "app/models/data_folder.h"
#include "app/models/model_service.h"
#include "app/models/recipe_file.h"
#include "app/models/transfer_meter.h"
#include "app/standard_stream.h"
#include "app/units.h"
#include "braid/printable.h"
#include "net/json/write_value.h"
#include "registry/durable_file.h"
#include "registry/ssh_key.h"

#include <array>
#include <cstdlib>
#include <ctime>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::app {
namespace {

using Action = ModelCommandOptions::Action;

std::string text_in(const Value& value, std::string_view name) {
  const Value* found = value.find(name);
  const auto* text = found != nullptr ? found->get_if<std::string>() : nullptr;
  return text != nullptr ? printable(*text, "\n\t") : std::string();
}

std::int64_t number_in(const Value& value, std::string_view name) {
  const Value* found = value.find(name);
  const auto* number = found != nullptr ? found->get_if<std::int64_t>() : nullptr;
  return number != nullptr ? *number : 0;
}

const ValueList& list_in(const Value& value, std::string_view name) {
  static const ValueList none;
  const Value* found = value.find(name);
  const auto* list = found != nullptr ? found->get_if<ValueList>() : nullptr;
  return list != nullptr ? *list : none;
}

std::string joined(const ValueList& words) {
  std::string text;
  for (const Value& word : words)
    if (const auto* one = word.get_if<std::string>()) text += (text.empty() ? "" : ", ") + printable(*one);
  return text;
}

// "2 hours ago".
std::string age(std::int64_t seconds) {
  constexpr std::array<std::pair<std::int64_t, std::string_view>, 6> kUnits = {
      {{31'536'000, "year"}, {2'592'000, "month"}, {604'800, "week"}, {86'400, "day"}, {3'600, "hour"}, {60, "minute"}}};
  const std::int64_t since = std::time(nullptr) - seconds;
  for (const auto& [length, name] : kUnits)
    if (since >= length) return fmt::format("{} {}{} ago", since / length, name, since / length > 1 ? "s" : "");
  return "just now";
}

void print_json(const Value& document) {
  std::string text;
  net::json::append_value(text, document);
  fmt::print("{}\n", text);
}

// Columns as wide as their widest cell.
void print_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("{:{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    fmt::print("{}\n", line);
  }
}

void print_list(const Value& document) {
  std::vector<std::vector<std::string>> rows = {{"NAME", "ID", "SIZE", "QUANTISATION", "MODIFIED"}};
  for (const Value& model : list_in(document, "data"))
    rows.push_back({text_in(model, "id"), text_in(model, "digest").substr(0, 12),
                    format_size(static_cast<std::uint64_t>(number_in(model, "bytes"))), text_in(model, "quantisation"),
                    age(number_in(model, "modified"))});
  print_table(rows);
}

void print_names(const Value& document) {
  for (const Value& model : list_in(document, "data")) fmt::print("{}\n", text_in(model, "id"));
}

void print_running(const Value& document) {
  std::vector<std::vector<std::string>> rows = {{"NAME", "ID", "SIZE", "CONTEXT", "UNTIL"}};
  for (const Value& model : list_in(document, "models")) {
    const std::string until = text_in(model, "expires_at");
    rows.push_back({text_in(model, "name"), text_in(model, "digest").substr(0, 12),
                    format_size(static_cast<std::uint64_t>(number_in(model, "size"))),
                    fmt::format("{}", number_in(model, "context_length")), until > "2300" ? "forever" : until});  // as Ollama means it
  }
  print_table(rows);
}

void print_shown(const Value& document) {
  const Value none;
  const Value* found = document.find("details");
  const Value& details = found != nullptr ? *found : none;
  const auto line = [](std::string_view name, const std::string& text) {
    if (!text.empty()) fmt::print("  {:14} {}\n", name, text);
  };
  fmt::print("Model\n");
  line("architecture", text_in(details, "family"));
  line("parameters", text_in(details, "parameter_size"));
  line("quantisation", text_in(details, "quantization_level"));
  line("made from", text_in(details, "parent_model"));
  line("able to", joined(list_in(document, "capabilities")));
  for (const auto& [name, heading] :
       {std::pair("parameters", "Parameters"), std::pair("system", "System"), std::pair("license", "Licence")})
    if (const std::string text = text_in(document, name); !text.empty()) fmt::print("\n{}\n{}\n", heading, text);
}

void print_status(const Value& document) {
  const std::string server = text_in(document, "server");
  if (server.empty()) {
    fmt::print("no server is running\n{} models in {}, {}\n", number_in(document, "models"), text_in(document, "data_folder"),
               format_size(static_cast<std::uint64_t>(number_in(document, "bytes"))));
  } else {
    fmt::print("braid {} at {}\n{} models, {} loaded\n", text_in(document, "version"), server, number_in(document, "models"),
               number_in(document, "loaded"));
  }
}

// The exit codes that the help describes.
int report_model_error(const Error& error) {
  const int code = report(error);
  if (error.code == ErrorCode::kNotFound) return kExitNotFound;
  if (error.code == ErrorCode::kModelNotLoaded) return kExitNoServer;
  if (error.code == ErrorCode::kCancelled) return kExitInterrupted;
  return code;
}

template <class Print>
Result<void> print(const Result<Value>& document, bool json, Print print_for_people) {
  if (!document) return document.error();
  json ? print_json(*document) : print_for_people(*document);
  return {};
}

Result<void> create(ModelService& service, const ModelCommandOptions& options, const ProgressSink& sink) {
  Result<ModelRecipe> recipe = read_recipe_file(service, options.modelfile, sink);
  if (!recipe) return recipe.error();
  recipe->model = options.names.front();
  recipe->quantize = options.quantize;
  return service.create(*recipe, sink);
}

// What takes its time.
Result<void> transfer(ModelService& service, const ModelCommandOptions& options) {
  TransferMeter meter(options.json);
  if (options.action == Action::kCreate) return create(service, options, meter.sink());
  const TransferWish wish{options.names.front(), options.insecure};
  return options.action == Action::kPull ? service.pull(wish, meter.sink()) : service.push(wish, meter.sink());
}

Result<void> show(ModelService& service, const ModelCommandOptions& options) {
  const Result<Value> document = service.show(options.names.front(), options.verbose);
  if (!document) return document.error();
  if (options.modelfile_only)
    fmt::print("{}", text_in(*document, "modelfile"));
  else if (options.json)
    print_json(*document);
  else
    print_shown(*document);
  return {};
}

Result<void> run(ModelService& service, const ModelCommandOptions& options) {
  const auto for_each_name = [&](auto action) -> Result<void> {
    for (const std::string& name : options.names)
      if (const Result<void> done = (service.*action)(name); !done) return done;
    if (options.json) print_json(ValueDict{{"status", "success"}});
    return {};
  };
  switch (options.action) {
    case Action::kPull:
    case Action::kPush:
    case Action::kCreate:
      return transfer(service, options);
    case Action::kList:
      return print(service.list(options.names.empty() ? "" : options.names.front()), options.json,
                   options.names_only ? print_names : print_list);
    case Action::kShow:
      return show(service, options);
    case Action::kRunning:
      return print(service.running(), options.json, print_running);
    case Action::kStatus:
      return print(service.status(), options.json, print_status);
    case Action::kStop:
      return for_each_name(&ModelService::stop);
    case Action::kRemove:
      return for_each_name(&ModelService::remove);
    case Action::kKey:  // needs no service
    case Action::kCopy:
      break;
  }
  const Result<void> copied = service.copy(options.names[0], options.names[1]);
  if (copied && options.json) print_json(ValueDict{{"status", "success"}});
  return copied;
}

// The key in the data folder, whoever has that open.
Result<void> print_key(const ModelCommandOptions& options) {
  if (!options.host.empty()) return invalid_argument("a server's key is in its data folder: name that with --data-dir there", "host");
  const std::string folder = data_folder(options.data.folder);
  if (folder.empty()) return Error{ErrorCode::kIo, "there is no home for a data folder; name one with --data-dir", ""};
  if (const Result<void> made = registry::make_folders(folder); !made) return made;
  const Result<registry::SshKey> key = registry::SshKey::read_or_make(key_file(folder));
  if (!key) return key.error();
  if (options.json)
    print_json(ValueDict{{"public_key", key->public_line()}});
  else
    fmt::print("{}\n", key->public_line());
  return {};
}

}  // namespace

int run_command(const ModelCommandOptions& options) {
  if (options.action == Action::kKey) {
    const Result<void> printed = print_key(options);
    return printed ? EXIT_SUCCESS : report_model_error(printed.error());
  }
  const Result<std::unique_ptr<ModelService>> service = find_model_service(options.data, options.host);
  if (!service) return report_model_error(service.error());
  const Result<void> done = run(**service, options);
  return done ? EXIT_SUCCESS : report_model_error(done.error());
}

}  // namespace braid::app
