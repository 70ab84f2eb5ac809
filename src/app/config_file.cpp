#include "app/config_file.h"

#include "app/environment.h"
#include "app/foreign_settings.h"
#include "app/nearest_name.h"
#include "app/whole_file.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>
#include <yaml-cpp/yaml.h>

namespace braid::app {
namespace {

constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20U;

bool is_configurable(const CLI::Option& option) {
  const std::string key = key_of(option);
  return !key.empty() && key != "config" && key != "help";
}

// The command's own options and those of its groups.
void for_each_option(CLI::App& command, const std::function<void(CLI::Option&)>& visit) {
  for (CLI::Option* option : command.get_options([](const CLI::Option*) { return true; }))
    if (is_configurable(*option)) visit(*option);
  for (CLI::App* group : sections_of(command)) for_each_option(*group, visit);
}

CLI::Option* find_option(CLI::App& command, const std::string& key) {
  CLI::Option* found = nullptr;
  for_each_option(command, [&](CLI::Option& option) {
    if (key_of(option) == key) found = &option;
  });
  return found;
}

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::vector<std::string> keys_of(CLI::App& command) {
  std::vector<std::string> keys;
  for_each_option(command, [&](CLI::Option& option) { keys.push_back(key_of(option)); });
  return keys;
}

std::string no_option(CLI::App& command, const std::string& key) {
  if (const std::string_view told = foreign_setting(key); !told.empty()) return fmt::format("there is no option '{}': {}", key, told);
  std::vector<std::string> keys = keys_of(command);
  for (const CLI::App* group : sections_of(command)) keys.push_back(section_name(*group));
  const std::string nearest = nearest_name(key, keys, std::max<std::size_t>(2, key.size() / 3));
  return nearest.empty() ? fmt::format("there is no option '{}'", key)
                         : fmt::format("there is no option '{}': is '{}' meant?", key, nearest);
}

void apply_entry(CLI::Option& option, const YAML::Node& value) {
  const std::string key = key_of(option);
  const bool is_list = value.IsSequence() && option.get_items_expected_max() > 1;
  if (!value.IsScalar() && !is_list) throw CLI::ValidationError(fmt::format("'{}' wants one plain value", key));
  const bool is_flag = option.get_items_expected_max() == 0;
  bool flag = true;
  if (is_flag && !YAML::convert<bool>::decode(value, flag)) throw CLI::ValidationError(fmt::format("'{}' wants true or false", key));
  if (option.count() > 0 || !flag) return;
  if (is_list) {
    for (const YAML::Node& item : value) option.add_result(item.as<std::string>());
  } else {
    option.add_result(is_flag ? "true" : value.Scalar());
  }
  option.run_callback();
}

// The file's one document; null when it has none.
YAML::Node load(const std::string& path) {
  const std::optional<std::string> text = read_whole_file(path, kMaxConfigBytes);
  if (!text) throw CLI::FileError(fmt::format("--config: cannot read '{}'", path));
  if (text->size() > kMaxConfigBytes)
    throw CLI::FileError(fmt::format("--config: '{}' is larger than 1 MiB: this is no list of options", path));
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(*text);
    if (documents.size() > 1) throw CLI::FileError(fmt::format("{}: the file must be one document, and '---' begins another", path));
    return documents.empty() ? YAML::Node() : documents.front();
  } catch (const YAML::ParserException& e) {
    throw CLI::FileError(fmt::format("{}:{}: {}", path, e.mark.line + 1, e.msg));
  }
}

// Reads one file into a command's options.
class FileReader {
 public:
  FileReader(CLI::App& command, const std::string& path) : command_(command), path_(path) {}

  void read() {
    const YAML::Node root = load(path_);
    if (root.IsNull()) return;
    if (!root.IsMap()) throw CLI::FileError(fmt::format("{}: the file must be a list of 'option: value' lines", path_));
    read_entries(root, nullptr);
  }

 private:
  // Of the whole file, or of a section.
  void read_entries(const YAML::Node& entries, CLI::App* section) {
    for (const auto& entry : entries) {
      try {
        read_entry(entry.first.Scalar(), entry.second, section);
      } catch (const CLI::FileError&) {
        throw;  // of an entry of this section: it has its own line
      } catch (const CLI::ParseError& e) {
        throw CLI::FileError(fmt::format("{}:{}: {}", path_, entry.first.Mark().line + 1, e.what()));
      } catch (const YAML::Exception& e) {
        throw CLI::FileError(fmt::format("{}:{}: {}", path_, entry.first.Mark().line + 1, e.msg));
      }
    }
  }

  void read_entry(const std::string& key, const YAML::Node& value, CLI::App* section) {
    CLI::App* const begun = section == nullptr && (value.IsMap() || value.IsNull()) ? find_section(key) : nullptr;
    if (!seen_.insert(begun != nullptr ? key + ':' : key).second)
      throw CLI::ValidationError(fmt::format("'{}' stands here for the second time", key));
    if (begun != nullptr) return read_entries(value, begun);
    CLI::Option* const option = find_option(command_, key);
    if (option == nullptr) throw CLI::ValidationError(no_option(command_, key));
    if (section != nullptr && find_option(*section, key) == nullptr && key != "model")
      throw CLI::ValidationError(fmt::format("'{}' is no option of the section '{}'", key, section_name(*section)));
    apply_entry(*option, value);
  }

  CLI::App* find_section(const std::string& name) {
    for (CLI::App* group : sections_of(command_))
      if (section_name(*group) == name) return group;
    return nullptr;
  }

  CLI::App& command_;
  const std::string& path_;
  std::set<std::string> seen_;
};

// A variable that is empty counts as none. Several values stand between commas.
void read_variable(CLI::Option& option) {
  const std::string name = variable_of(key_of(option));
  const std::string text = environment_variable(name.c_str());
  if (text.empty() || option.count() > 0) return;
  try {
    YAML::Node value(text);
    const bool is_flag = option.get_items_expected_max() == 0;
    bool flag = true;
    if (is_flag && !YAML::convert<bool>::decode(value, flag)) throw CLI::ValidationError("wants true or false");
    if (!flag) return;
    if (option.get_items_expected_max() > 1) {
      for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        option.add_result(text.substr(begin, end - begin));
        begin = end + 1;
      }
    } else {
      option.add_result(is_flag ? "true" : text);
    }
    option.run_callback();
  } catch (const CLI::ParseError& e) {
    throw CLI::ValidationError(fmt::format("{}: {}", name, e.what()));
  }
}

// One sentence for each variable that begins as those of options do, is none of them, and is nearly one. What is not near is somebody
// else's: a script's, or a service's that is called like this one.
std::vector<std::string> misspelt_variables(CLI::App& command) {
  constexpr std::string_view kPrefix = "BRAID_";
  std::vector<std::string> keys = keys_of(command);
  keys.insert(keys.end(), {"config", "api-key", "registry-token"});
  std::vector<std::string> told;
  for (const std::string& name : environment_names(kPrefix)) {
    std::string setting = lower_case(name.substr(kPrefix.size()));
    const std::string_view foreign = foreign_setting(setting);
    std::ranges::replace(setting, '_', '-');
    if (std::ranges::find(keys, setting) != keys.end()) continue;
    const std::string nearest = nearest_name(setting, keys, std::max<std::size_t>(2, setting.size() / 4));
    if (!foreign.empty())
      told.push_back(fmt::format("the variable {} sets nothing: {}", name, foreign));
    else if (!nearest.empty())
      told.push_back(fmt::format("the variable {} sets nothing: is {} meant?", name, variable_of(nearest)));
  }
  return told;
}

// The file that is read where none is named.
std::string usual_file() {
  if (std::string named = environment_variable("BRAID_CONFIG"); !named.empty()) return named;
  const std::string home = environment_variable("HOME");
  std::string folder = environment_variable("XDG_CONFIG_HOME");
  if (folder.empty() && !home.empty()) folder = home + "/.config";
  std::error_code unreadable;
  for (const std::string& path : {folder.empty() ? std::string() : folder + "/braid/braid.yaml", std::string("/etc/braid/braid.yaml")})
    if (!path.empty() && std::filesystem::is_regular_file(path, unreadable)) return path;
  return {};
}

}  // namespace

std::vector<CLI::App*> sections_of(CLI::App& command) {
  return command.get_subcommands([](const CLI::App* sub) { return sub->get_name().empty(); });
}

std::map<std::string, std::string> settings_of(CLI::App& command) {
  std::map<std::string, std::string> settings;
  for_each_option(command, [&](CLI::Option& option) { settings[key_of(option)] = fmt::format("{}", fmt::join(option.results(), ",")); });
  return settings;
}

std::string section_name(const CLI::App& group) {
  const std::string& title = group.get_group();
  return lower_case(title.substr(0, title.find(' ')));
}

std::string key_of(const CLI::Option& option) {
  std::string name = option.get_name();
  name.erase(0, name.find_first_not_of('-'));
  return name;
}

std::string variable_of(const std::string& key) {
  std::string name = "BRAID_" + key;
  for (char& c : name) c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

Configuration configure(CLI::App& command, const std::string& named) {
  Configuration configuration;
  const auto note = [&](Origin origin) {
    for_each_option(command, [&](CLI::Option& option) {
      if (option.count() > 0) configuration.origins.try_emplace(&option, origin);
    });
  };
  note(Origin::kCommandLine);
  for_each_option(command, read_variable);
  configuration.doubts = misspelt_variables(command);
  note(Origin::kEnvironment);
  configuration.file = named.empty() ? usual_file() : named;
  if (configuration.file == "off") configuration.file.clear();
  if (!configuration.file.empty()) FileReader(command, configuration.file).read();
  note(Origin::kFile);
  for_each_option(command, [&](CLI::Option& option) { configuration.origins.try_emplace(&option, Origin::kDefault); });
  return configuration;
}

}  // namespace braid::app
