// Options of every command that loads a model.
#pragma once

#include "app/options.h"

#include <CLI/CLI.hpp>
#include <cstdint>

namespace braid::app {

inline constexpr std::int32_t kMostTokens = 1 << 24;

void add_model_options(CLI::App& app, ModelOptions& options);

}  // namespace braid::app
