#include "app/option_types.h"

#include "app/units.h"
#include "kernels/kv_type.h"
#include "kernels/select.h"
#include "model/quantization_mix.h"

#include <charconv>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <system_error>
#include <utility>

namespace braid::app {
namespace {

// An option whose text goes through `read`: it returns an empty string, or what is wrong.
template <class Read>
CLI::Option* add_checked(CLI::App& app, const std::string& name, const std::string& type, const std::string& help, Read read) {
  return app
      .add_option_function<std::string>(
          name,
          [name, read = std::move(read)](const std::string& text) {
    const std::string wrong = read(text);
    if (!wrong.empty()) throw CLI::ValidationError(name, wrong);
          },
          help)
      ->type_name(type);
}

template <class Integer>
bool read_integer(const std::string& text, Integer least, Integer most, Integer& value) {
  Integer read = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
  if (error != std::errc{} || end != text.data() + text.size() || read < least || read > most) return false;
  value = read;
  return true;
}

template <class Integer>
std::string not_an_integer(const std::string& text, Integer least, Integer most) {
  return fmt::format("'{}' is not a whole number from {} to {}", text, least, most);
}

}  // namespace

CLI::Option* add_integer(CLI::App& app, const std::string& name, std::int32_t& target, std::int32_t least, std::int32_t most,
                         const std::string& help) {
  return add_checked(
             app, name, "N", help,
             [&target, least, most](const std::string& text) {
    return read_integer(text, least, most, target) ? std::string() : not_an_integer(text, least, most);
             })
      ->default_str(fmt::to_string(target));
}

CLI::Option* add_integer(CLI::App& app, const std::string& name, std::uint32_t& target, std::uint32_t least, std::uint32_t most,
                         const std::string& help) {
  return add_checked(
             app, name, "N", help,
             [&target, least, most](const std::string& text) {
    return read_integer(text, least, most, target) ? std::string() : not_an_integer(text, least, most);
             })
      ->default_str(fmt::to_string(target));
}

CLI::Option* add_count(CLI::App& app, const std::string& name, std::int64_t& target, std::int64_t least, std::int64_t most,
                       const std::string& help) {
  return add_checked(
             app, name, "N", help,
             [&target, least, most](const std::string& text) {
    return read_integer(text, least, most, target) ? std::string() : not_an_integer(text, least, most);
             })
      ->default_str(fmt::to_string(target));
}

CLI::Option* add_integer(CLI::App& app, const std::string& name, std::optional<std::int32_t>& target, std::int32_t least, std::int32_t most,
                         const std::string& help) {
  return add_checked(app, name, "N", help, [&target, least, most](const std::string& text) {
    return read_integer(text, least, most, target.emplace()) ? std::string() : not_an_integer(text, least, most);
  });
}

CLI::Option* add_port(CLI::App& app, const std::string& name, std::uint16_t& target, const std::string& help) {
  constexpr std::uint16_t kMost = std::numeric_limits<std::uint16_t>::max();
  return add_checked(
             app, name, "PORT", help,
             [&target](const std::string& text) {
    return read_integer<std::uint16_t>(text, 0, kMost, target) ? std::string() : not_an_integer<std::uint16_t>(text, 0, kMost);
             })
      ->default_str(fmt::to_string(target));
}

CLI::Option* add_seed(CLI::App& app, const std::string& name, std::optional<std::uint64_t>& target, const std::string& help) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  return add_checked(app, name, "N", help, [&target](const std::string& text) {
    return read_integer<std::uint64_t>(text, 0, kMost, target.emplace()) ? std::string() : not_an_integer<std::uint64_t>(text, 0, kMost);
  });
}

CLI::Option* add_number(CLI::App& app, const std::string& name, double& target, double least, double most, const std::string& help) {
  return add_checked(
             app, name, "X", help,
             [&target, least, most](const std::string& text) {
    double value = 0.0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || !(value >= least && value <= most))
      return fmt::format("'{}' is not a number from {} to {}", text, least, most);
    target = value;
    return std::string();
             })
      ->default_str(fmt::to_string(target));
}

CLI::Option* add_size(CLI::App& app, const std::string& name, std::optional<std::uint64_t>& target, const std::string& help) {
  return add_checked(app, name, "SIZE", help, [&target](const std::string& text) {
    const auto size = parse_size(text);
    if (!size) return size.error().message;
    target = *size;
    return std::string();
  });
}

CLI::Option* add_size(CLI::App& app, const std::string& name, std::uint64_t& target, const std::string& help) {
  return add_checked(
             app, name, "SIZE", help,
             [&target](const std::string& text) {
    const auto size = parse_size(text);
    if (!size) return size.error().message;
    target = *size;
    return std::string();
             })
      ->default_str(format_size(target));
}

CLI::Option* add_bytes(CLI::App& app, const std::string& name, std::size_t& target, std::size_t least, std::size_t most,
                       const std::string& help) {
  return add_checked(
             app, name, "SIZE", help,
             [&target, least, most](const std::string& text) {
    const auto size = parse_size(text);
    if (!size) return size.error().message;
    if (*size < least || *size > most) return fmt::format("'{}' is not from {} to {}", text, format_size(least), format_size(most));
    target = *size;
    return std::string();
             })
      ->default_str(format_size(target));
}

CLI::Option* add_checkpoints(CLI::App& app, const std::string& name, std::int32_t& interval, std::optional<std::uint64_t>& memory,
                             const std::string& help) {
  constexpr std::int32_t kMost = 1 << 20;
  return add_checked(
             app, name, "N,SIZE", help,
             [&interval, &memory](const std::string& text) {
    const std::size_t comma = text.find(',');
    const std::string first = text.substr(0, comma);
    const bool is_size = comma == std::string::npos && first.find_first_not_of("0123456789") != std::string::npos && first.front() != '-';
    if (!is_size && !read_integer(first, 0, kMost, interval)) return not_an_integer(first, 0, kMost);
    if (!is_size && comma == std::string::npos) return std::string();
    const auto size = parse_size(is_size ? text : text.substr(comma + 1));
    if (!size) return size.error().message;
    memory = *size;
    return std::string();
             })
      ->default_str(fmt::to_string(interval));
}

CLI::Option* add_duration(CLI::App& app, const std::string& name, std::chrono::milliseconds& target, const std::string& help) {
  return add_checked(
             app, name, "TIME", help,
             [&target](const std::string& text) {
    const auto duration = parse_duration(text);
    if (!duration) return duration.error().message;
    target = *duration;
    return std::string();
             })
      ->default_str(target.count() % 1000 == 0 ? fmt::format("{}", std::chrono::duration_cast<std::chrono::seconds>(target))
                                               : fmt::format("{}", target));
}

CLI::Option* add_timeout(CLI::App& app, const std::string& name, std::chrono::milliseconds& target, const std::string& help) {
  return add_duration(app, name, target, help)->check([](const std::string& text) {
    const auto duration = parse_duration(text);
    return duration && duration->count() == 0 ? std::string("0 would leave no time at all") : std::string();
  });
}

CLI::Option* add_kv_type(CLI::App& app, const std::string& name, std::optional<kernels::KvType>& target, const std::string& help) {
  return add_checked(
             app, name, "TYPE", help,
             [&target](const std::string& text) {
    target = kernels::parse_kv_type(text);
    if (!target && text != "auto") return fmt::format("'{}' is not a KV type: write auto, f32, f16, bf16 or int8", text);
    return std::string();
             })
      ->default_str("auto");
}

CLI::Option* add_float_type(CLI::App& app, const std::string& name, std::optional<kernels::WeightType>& target, const std::string& help) {
  static const std::map<std::string, std::optional<kernels::WeightType>> kTypes = {{"auto", std::nullopt},
                                                                                   {"f32", kernels::WeightType::kF32},
                                                                                   {"bf16", kernels::WeightType::kBF16},
                                                                                   {"f16", kernels::WeightType::kF16},
                                                                                   {"int8", kernels::WeightType::kQ8_0}};
  return add_checked(
             app, name, "TYPE", help,
             [&target](const std::string& text) {
    const auto type = kTypes.find(text);
    if (type == kTypes.end()) return fmt::format("'{}' is not an arithmetic: write auto, f32, bf16, f16 or int8", text);
    target = type->second;
    return std::string();
             })
      ->default_str("auto");
}

CLI::Option* add_quantized_type(CLI::App& app, const std::string& name, std::optional<kernels::WeightType>& target,
                                const std::string& help) {
  static const std::map<std::string, kernels::WeightType> kTypes = {{"q8_0", kernels::WeightType::kQ8_0},
                                                                    {"q6_k", kernels::WeightType::kQ6_K},
                                                                    {"q5_k", kernels::WeightType::kQ5_K},
                                                                    {"q4_k", kernels::WeightType::kQ4_K},
                                                                    {"q4_0", kernels::WeightType::kQ4_0}};
  return add_checked(app, name, "TYPE", help, [&target](const std::string& text) {
    const auto type = kTypes.find(text);
    if (type == kTypes.end()) return fmt::format("'{}' is not a type of weights: write q8_0, q6_k, q5_k, q4_k or q4_0", text);
    target = type->second;
    return std::string();
  });
}

CLI::Option* add_file_type(CLI::App& app, const std::string& name, std::optional<kernels::WeightType>& target, const std::string& help) {
  static const std::map<std::string, std::optional<kernels::WeightType>> kTypes = {{"auto", std::nullopt},
                                                                                   {"f32", kernels::WeightType::kF32},
                                                                                   {"f16", kernels::WeightType::kF16},
                                                                                   {"bf16", kernels::WeightType::kBF16},
                                                                                   {"q8_0", kernels::WeightType::kQ8_0}};
  return add_checked(
             app, name, "TYPE", help,
             [&target](const std::string& text) {
    const auto type = kTypes.find(text);
    if (type == kTypes.end()) return fmt::format("'{}' is not a type of files: write auto, f32, f16, bf16 or q8_0", text);
    target = type->second;
    return std::string();
             })
      ->default_str("auto");
}

CLI::Option* add_mix(CLI::App& app, const std::string& name, std::string& target, const std::string& help) {
  return add_checked(
             app, name, "TYPE", help,
             [&target](const std::string& text) {
    const model::QuantizationMix* mix = model::quantization_mix(text);
    if (mix == nullptr) return fmt::format("'{}' is not a type of quantised files: see --help", text);
    target = mix->name;
    return std::string();
             })
      ->default_str(target);
}

CLI::Option* add_huge_pages(CLI::App& app, const std::string& name, files::HugePages& target, const std::string& help) {
  static const std::map<std::string, files::HugePages> kKinds = {
      {"off", files::HugePages::kOff}, {"transparent", files::HugePages::kTransparent}, {"explicit", files::HugePages::kExplicit}};
  return add_checked(
             app, name, "KIND", help,
             [&target](const std::string& text) {
    const auto kind = kKinds.find(text);
    if (kind == kKinds.end()) return fmt::format("'{}' is not a kind of huge pages: write off, transparent or explicit", text);
    target = kind->second;
    return std::string();
             })
      ->default_str("transparent");
}

CLI::Option* add_isa(CLI::App& app, const std::string& name, std::optional<kernels::Isa>& target, const std::string& help) {
  return add_checked(app, name, "TIER", help, [&target](const std::string& text) {
    target = kernels::parse_isa(text);
    return target ? std::string() : fmt::format("'{}' is not a kernel tier: write scalar, neon, avx2, avx512 or amx", text);
  });
}

}  // namespace braid::app
