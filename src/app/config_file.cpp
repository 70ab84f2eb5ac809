#include "app/config_file.h"

#include "app/whole_file.h"

#include <fmt/format.h>
#include <optional>
#include <set>
#include <string>
#include <vector>
#include <yaml-cpp/yaml.h>

namespace braid::app {
namespace {

constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20U;

void apply_entry(CLI::App& command, const std::string& key, const YAML::Node& value) {
  CLI::Option* option = command.get_option_no_throw("--" + key);
  if (option == nullptr) option = command.get_option_no_throw(key);  // positional
  if (option == nullptr || key == "config" || key == "help") throw CLI::ValidationError(fmt::format("there is no option '{}'", key));
  const bool is_list = value.IsSequence() && option->get_items_expected_max() > 1;
  if (!value.IsScalar() && !is_list) throw CLI::ValidationError(fmt::format("'{}' wants one plain value", key));
  if (option->count() > 0) return;
  const bool is_flag = option->get_items_expected_max() == 0;
  bool flag = true;
  if (is_flag && !YAML::convert<bool>::decode(value, flag)) throw CLI::ValidationError(fmt::format("'{}' wants true or false", key));
  if (!flag) return;
  if (is_list) {
    for (const YAML::Node& item : value) option->add_result(item.as<std::string>());
  } else {
    option->add_result(is_flag ? "true" : value.Scalar());
  }
  option->run_callback();
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

}  // namespace

void apply_config_file(CLI::App& command, const std::string& path) {
  const YAML::Node root = load(path);
  if (root.IsNull()) return;
  if (!root.IsMap()) throw CLI::FileError(fmt::format("{}: the file must be a list of 'option: value' lines", path));
  std::set<std::string> seen;
  for (const auto& entry : root) {
    try {
      const std::string& key = entry.first.Scalar();
      if (!seen.insert(key).second) throw CLI::ValidationError(fmt::format("'{}' stands here for the second time", key));
      apply_entry(command, key, entry.second);
    } catch (const CLI::ParseError& e) {
      throw CLI::FileError(fmt::format("{}:{}: {}", path, entry.first.Mark().line + 1, e.what()));
    } catch (const YAML::Exception& e) {
      throw CLI::FileError(fmt::format("{}:{}: {}", path, entry.first.Mark().line + 1, e.msg));
    }
  }
}

}  // namespace braid::app
