#include "app/config_file.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

namespace braid::app {
namespace {

void apply_entry(CLI::App& command, const std::string& key, const YAML::Node& value) {
  CLI::Option* option = command.get_option_no_throw("--" + key);
  if (option == nullptr) option = command.get_option_no_throw(key);  // positional
  if (option == nullptr || key == "config" || key == "help") throw CLI::ValidationError(fmt::format("there is no option '{}'", key));
  const bool is_list = value.IsSequence() && option->get_items_expected_max() > 1;
  if (!value.IsScalar() && !is_list) throw CLI::ValidationError(fmt::format("'{}' wants one plain value", key));
  if (option->count() > 0) return;
  const bool is_flag = option->get_items_expected_max() == 0;
  if (is_flag && !value.as<bool>()) return;
  if (is_list) {
    for (const YAML::Node& item : value) option->add_result(item.as<std::string>());
  } else {
    option->add_result(is_flag ? "true" : value.Scalar());
  }
  option->run_callback();
}

}  // namespace

void apply_config_file(CLI::App& command, const std::string& path) {
  YAML::Node root;
  try {
    root = YAML::LoadFile(path);
  } catch (const YAML::BadFile&) {
    throw CLI::FileError(fmt::format("--config: cannot read '{}'", path));
  } catch (const YAML::ParserException& e) {
    throw CLI::FileError(fmt::format("{}:{}: {}", path, e.mark.line + 1, e.msg));
  }
  if (root.IsNull()) return;
  if (!root.IsMap()) throw CLI::FileError(fmt::format("{}: the file must be a list of 'option: value' lines", path));
  for (const auto& entry : root) {
    try {
      apply_entry(command, entry.first.Scalar(), entry.second);
    } catch (const CLI::ParseError& e) {
      throw CLI::FileError(fmt::format("{}:{}: {}", path, entry.first.Mark().line + 1, e.what()));
    } catch (const YAML::Exception& e) {
      throw CLI::FileError(fmt::format("{}:{}: {}", path, entry.first.Mark().line + 1, e.msg));
    }
  }
}

}  // namespace braid::app
