// Options of every command that loads or keeps models.
#pragma once

#include "app/options.h"

#include <CLI/CLI.hpp>
#include <cstdint>

namespace braid::app {

inline constexpr std::int32_t kMostTokens = 1 << 24;

inline constexpr char kChatTemplateHelp[] =
    "A Jinja or JSON file, or a name: chatml, plain, llama2, llama3, mistral, gemma, phi3, phi4, zephyr, deepseek, vicuna, alpaca";

// All but the chat template.
void add_model_options(CLI::App& app, ModelOptions& options);
void add_rank_options(CLI::App& app, RankOptions& options);
void add_data_options(CLI::App& app, DataOptions& options);
void add_chat_template(CLI::App& app, ModelOptions& options);

}  // namespace braid::app
