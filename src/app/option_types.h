// Options of the command line whose values are checked, with errors that say what would be accepted.
#pragma once

#include "app/options.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace braid::app {

// Each reads into `target`, which holds the default and must outlive the parse. The help text shows the default.
CLI::Option* add_integer(CLI::App& app, const std::string& name, std::int32_t& target, std::int32_t least, std::int32_t most,
                         const std::string& help);
CLI::Option* add_integer(CLI::App& app, const std::string& name, std::uint32_t& target, std::uint32_t least, std::uint32_t most,
                         const std::string& help);
CLI::Option* add_count(CLI::App& app, const std::string& name, std::int64_t& target, std::int64_t least, std::int64_t most,
                       const std::string& help);
CLI::Option* add_integer(CLI::App& app, const std::string& name, std::optional<std::int32_t>& target, std::int32_t least, std::int32_t most,
                         const std::string& help);
CLI::Option* add_port(CLI::App& app, const std::string& name, std::uint16_t& target, const std::string& help);
CLI::Option* add_seed(CLI::App& app, const std::string& name, std::optional<std::uint64_t>& target, const std::string& help);
CLI::Option* add_number(CLI::App& app, const std::string& name, double& target, double least, double most, const std::string& help);
CLI::Option* add_size(CLI::App& app, const std::string& name, std::optional<std::uint64_t>& target, const std::string& help);
CLI::Option* add_size(CLI::App& app, const std::string& name, std::uint64_t& target, const std::string& help);
CLI::Option* add_bytes(CLI::App& app, const std::string& name, std::size_t& target, std::size_t least, std::size_t most,
                       const std::string& help);
// "N", "SIZE" with a unit, or "N,SIZE": what is not said stays as it is.
CLI::Option* add_checkpoints(CLI::App& app, const std::string& name, std::int32_t& interval, std::optional<std::uint64_t>& memory,
                             const std::string& help);
CLI::Option* add_duration(CLI::App& app, const std::string& name, std::chrono::milliseconds& target, const std::string& help);
CLI::Option* add_timeout(CLI::App& app, const std::string& name, std::chrono::milliseconds& target, const std::string& help);  // not 0
CLI::Option* add_kv_type(CLI::App& app, const std::string& name, std::optional<kernels::KvType>& target, const std::string& help);
CLI::Option* add_float_type(CLI::App& app, const std::string& name, std::optional<kernels::WeightType>& target, const std::string& help);
// A type of the GGUF file that weights are rounded to.
CLI::Option* add_quantized_type(CLI::App& app, const std::string& name, std::optional<kernels::WeightType>& target,
                                const std::string& help);
// What a file's matrices become.
CLI::Option* add_file_type(CLI::App& app, const std::string& name, std::optional<kernels::WeightType>& target, const std::string& help);
// The name of a model::QuantizationMix.
CLI::Option* add_mix(CLI::App& app, const std::string& name, std::string& target, const std::string& help);
CLI::Option* add_huge_pages(CLI::App& app, const std::string& name, files::HugePages& target, const std::string& help);
CLI::Option* add_isa(CLI::App& app, const std::string& name, std::optional<kernels::Isa>& target, const std::string& help);

}  // namespace braid::app
