// The options of `braid serve`, a file for each subject, which is a group of its help. add_* declares them; *_fault says what of their
// values cannot be together, or is empty.
#pragma once

#include "app/options.h"

#include <CLI/CLI.hpp>
#include <string>

namespace braid::app {

void add_listen_options(CLI::App& app, ServeOptions& options);
// Once everything is parsed: --host and --port are an address of their own only where they are given, or where there is no other.
void settle_listen_options(const CLI::App& serve, ServeOptions& options);
std::string listen_fault(const ServeOptions& options);

void add_served_models(CLI::App& serve, CLI::App& group, ServeOptions& options);
std::string models_fault(const ServeOptions& options);

void add_limit_options(CLI::App& app, net::ServerOptions& options);

void add_watch_options(CLI::App& app, WatchOptions& options);
std::string watch_fault(const WatchOptions& options);

void add_batch_options(CLI::App& app, BatchOptions& options);
std::string batch_fault(const BatchOptions& options);

void add_speculation_options(CLI::App& app, ServeOptions& options);
std::string speculation_fault(const ServeOptions& options);

void add_cache_options(CLI::App& app, ServeOptions& options);
std::string cache_fault(const ServeOptions& options);

void add_answer_options(CLI::App& app, ServeOptions& options);

void add_access_options(CLI::App& app, ServeOptions& options);
std::string access_fault(const ServeOptions& options);

void add_log_options(CLI::App& app, LogOptions& options);
std::string log_fault(const LogOptions& options);

}  // namespace braid::app
