// `braid launch --ranks N [--hostfile FILE] serve …`, which is `braid serve … --ranks N [--hostfile FILE]`.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace braid::app {

// The arguments of the command that is meant; none: these are not of `launch`. What stands before the command goes behind it.
std::optional<std::vector<std::string>> launched(const std::vector<std::string>& arguments);

}  // namespace braid::app
