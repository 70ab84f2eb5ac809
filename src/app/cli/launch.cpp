#include "app/cli/launch.h"

#include <algorithm>

namespace braid::app {

std::optional<std::vector<std::string>> launched(const std::vector<std::string>& arguments) {
  if (arguments.size() < 2 || arguments[1] != "launch") return std::nullopt;
  const auto own = arguments.begin() + 2;
  const auto command = std::find(own, arguments.end(), "serve");
  std::vector<std::string> meant{arguments.front(), "serve"};
  if (command != arguments.end()) meant.insert(meant.end(), command + 1, arguments.end());
  meant.insert(meant.end(), own, command);
  return meant;
}

}  // namespace braid::app
