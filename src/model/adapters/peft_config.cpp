#include "model/adapters/peft_config.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <optional>
#include <regex>
#include <simdjson.h>

namespace braid::model {
namespace {

using simdjson::dom::element;

constexpr std::size_t kMostPatterns = 4096;
constexpr std::size_t kMostPatternLength = 512;
constexpr double kMostRank = 1 << 20;
constexpr std::size_t kMostTokens = 1 << 20;

// What would change the sum, unless it is false, null, 0 or empty.
constexpr std::string_view kUnknownKinds[] = {
    "alora_invocation_tokens", "layer_replication", "use_qalora",       "arrow_config", "use_bdlora",
    "velora_config",           "kasa_config",       "monteclora_config"};

// Parameters that are matrices, or one for each expert, in the order in which modules have them.
constexpr std::string_view kKnownParameters[] = {"weight", "gate_up_proj", "up_proj", "down_proj"};

constexpr std::string_view kBiases[] = {"none", "all", "lora_only"};

constexpr std::string_view kBeginningsBesideTheBase[] = {"gaussian", "eva", "orthogonal"};
constexpr std::string_view kBeginningsInTheBase[] = {"pissa", "olora", "corda", "loftq", "lora_ga"};

bool is_plain(std::string_view pattern) {
  return std::ranges::all_of(pattern, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

bool ends_in(std::string_view module, std::string_view name) {
  if (!module.ends_with(name)) return false;
  return module.size() == name.size() || module[module.size() - name.size() - 1] == '.';
}

// In time that grows with the product of both lengths: no pattern of a file may hold a thread up.
std::regex compiled(const std::string& pattern) {
  auto flags = std::regex::ECMAScript;
#ifdef __GLIBCXX__
  flags |= std::regex_constants::__polynomial;
#endif
  return std::regex("(.*\\.)?(" + pattern + ")", flags);
}

bool is_off(const element& value) {
  bool flag = false;
  double number = 0.0;
  simdjson::dom::array array;
  simdjson::dom::object object;
  if (value.is_null()) return true;
  if (value.get(flag) == simdjson::SUCCESS) return !flag;
  if (value.get(number) == simdjson::SUCCESS) return number == 0.0;
  if (value.get(array) == simdjson::SUCCESS) return array.size() == 0;
  if (value.get(object) == simdjson::SUCCESS) return object.size() == 0;
  return false;
}

class PeftReader {
 public:
  PeftReader(element root, std::string path) : root_(root) { config.path = std::move(path); }

  PeftConfig config;
  std::optional<Error> error;

  void fail(ErrorCode code, const std::string& what) {
    if (!error) error = Error{code, fmt::format("{}: {}", config.path, what), {}};
  }

  std::optional<element> find(std::string_view key) const {
    element value;
    if (root_[key].get(value) != simdjson::SUCCESS || value.is_null()) return std::nullopt;
    return value;
  }

  double number(std::string_view key, double fallback, double low, double high) {
    const auto value = find(key);
    if (!value) return fallback;
    double number = 0.0;
    if (value->get(number) != simdjson::SUCCESS || !(number >= low && number <= high)) {
      fail(ErrorCode::kBadFile, fmt::format("'{}' is {}, expected a number of {} to {}", key, simdjson::minify(*value), low, high));
      return fallback;
    }
    return number;
  }

  void expect_whole(std::string_view key, double number) {
    if (number != std::floor(number)) fail(ErrorCode::kBadFile, fmt::format("'{}' has {}, expected a whole number", key, number));
  }

  bool flag(std::string_view key) {
    const auto value = find(key);
    bool on = false;
    if (value && value->get(on) != simdjson::SUCCESS) fail(ErrorCode::kBadFile, fmt::format("'{}' is neither true nor false", key));
    return on;
  }

  std::vector<std::pair<std::string, double>> patterns(std::string_view key, double low, double high) {
    std::vector<std::pair<std::string, double>> all;
    const auto value = find(key);
    simdjson::dom::object object;
    if (!value) return all;
    if (value->get(object) != simdjson::SUCCESS || object.size() > kMostPatterns) {
      fail(ErrorCode::kBadFile, fmt::format("'{}' is no object of at most {} patterns", key, kMostPatterns));
      return all;
    }
    for (const auto& [pattern, entry] : object) {
      double number = 0.0;
      if (entry.get(number) != simdjson::SUCCESS || !(number >= low && number <= high) || pattern.size() > kMostPatternLength)
        fail(ErrorCode::kBadFile, fmt::format("'{}' has no number of {} to {} for \"{}\"", key, low, high, pattern));
      check(key, std::string(pattern));
      all.emplace_back(pattern, number);
    }
    return all;
  }

  void check(std::string_view key, const std::string& pattern) {
    if (is_plain(pattern)) return;
    try {
      compiled(pattern);
    } catch (const std::regex_error& fault) {
      fail(ErrorCode::kBadFile, fmt::format("'{}': \"{}\" is no regular expression that this build reads: {}", key, pattern, fault.what()));
    }
  }

  template <class Predicate>
  static bool is_list_of(const element& value, const Predicate& predicate) {
    simdjson::dom::array array;
    if (value.get(array) != simdjson::SUCCESS) return false;
    for (const element entry : array)
      if (!predicate(entry)) return false;
    return true;
  }

  // What the tensors tell anyway; of another type it was not written by PEFT.
  void check_others() {
    for (const std::string_view key : {"target_modules", "modules_to_save", "exclude_modules", "layers_pattern"})
      if (const auto value = find(key);
          value && !value->is_string() && !is_list_of(*value, [](const element& name) { return name.is_string(); }))
        fail(ErrorCode::kBadFile, fmt::format("'{}' is neither a text nor a list of texts", key));
    for (const std::string_view key : {"fan_in_fan_out", "lora_bias"}) flag(key);
    const auto layers = find("layers_to_transform");
    if (layers && !layers->is_int64() && !is_list_of(*layers, [](const element& layer) { return layer.is_int64(); }))
      fail(ErrorCode::kBadFile, "'layers_to_transform' is neither a layer nor a list of layers");
    std::string_view kind;
    const auto bias = find("bias");
    if (bias && (bias->get(kind) != simdjson::SUCCESS || std::ranges::find(kBiases, kind) == std::end(kBiases)))
      fail(ErrorCode::kBadFile, fmt::format("'bias' is {}, expected one of {}", simdjson::minify(*bias), fmt::join(kBiases, ", ")));
  }

  // Which modules are adapted the tensors tell. A list of names, or "all-linear", means all layers; a regular expression anything.
  void read_targets() {
    const auto value = find("target_modules");
    simdjson::dom::array array;
    std::string_view text;
    const bool names = value && (value->get(array) == simdjson::SUCCESS || (value->get(text) == simdjson::SUCCESS && text == "all-linear"));
    // The layer 0 is one, where nothing else that is 0 says anything.
    const auto limits = [&](std::string_view key) {
      const auto limit = find(key);
      return limit && (limit->is_number() || !is_off(*limit));
    };
    config.all_layers = names && !limits("layers_to_transform") && !limits("exclude_modules");
    simdjson::dom::array::iterator entry = array.begin();
    for (std::size_t i = 0; config.all_layers && value->is_array() && i < array.size(); ++i, ++entry)
      if (std::string_view name; (*entry).get(name) != simdjson::SUCCESS || name.find_first_of("0123456789") != std::string_view::npos)
        config.all_layers = false;  // a layer's own
  }

  // What PEFT does when it makes an adapter, and once more when it reads one: some ways take a part of the base's weights away, which is in
  // the adapter then.
  void read_beginning() {
    constexpr std::string_view kKey = "init_lora_weights";
    const auto value = find(kKey);
    if (!value || value->is_bool()) return;
    std::string_view text;
    if (value->get(text) != simdjson::SUCCESS) return fail(ErrorCode::kBadFile, fmt::format("'{}' is {}", kKey, simdjson::minify(*value)));
    std::string name(text);
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (std::ranges::find(kBeginningsBesideTheBase, name) != std::end(kBeginningsBesideTheBase)) return;
    const bool takes_away = std::ranges::any_of(kBeginningsInTheBase, [&](std::string_view known) { return name.starts_with(known); });
    fail(ErrorCode::kUnsupported,
         takes_away
             ? fmt::format("'{}' is \"{}\", by which a part of the base's weights is in the adapter: save it for the whole base, with "
                           "path_initial_model_for_weight_conversion",
                           kKey, text)
             : fmt::format("'{}' is \"{}\", and whether that leaves the base's weights as they are this build does not know", kKey, text));
  }

  void read_parameters() {
    const auto value = find("target_parameters");
    if (!value || is_off(*value)) return;
    simdjson::dom::array array;
    if (value->get(array) != simdjson::SUCCESS || array.size() > kMostPatterns)
      return fail(ErrorCode::kBadFile, fmt::format("'target_parameters' is no list of at most {} names", kMostPatterns));
    for (const element entry : array) {
      std::string_view name;
      if (entry.get(name) != simdjson::SUCCESS) return fail(ErrorCode::kBadFile, "'target_parameters' holds what is no name");
      if (std::ranges::find(kKnownParameters, name.substr(name.rfind('.') + 1)) == std::end(kKnownParameters))
        return fail(ErrorCode::kUnsupported, fmt::format("'target_parameters' has '{}', expected the name of a parameter {}", name,
                                                         fmt::join(kKnownParameters, ", ")));
      config.parameters.emplace_back(name);
      if (name.find_first_of("0123456789") != std::string_view::npos) config.all_layers = false;  // a layer's own
    }
    std::string_view version;
    const auto written_by = find("peft_version");  // which PEFT says from 0.18 on
    const bool says = written_by && written_by->get(version) == simdjson::SUCCESS;
    config.has_inputs_first = !says || version.starts_with("0.18.");
  }

  std::vector<std::int32_t> read_tokens(const element& value) {
    simdjson::dom::array array;
    std::vector<std::int32_t> tokens;
    if (value.get(array) != simdjson::SUCCESS || array.size() > kMostTokens) {
      fail(ErrorCode::kBadFile, fmt::format("'trainable_token_indices' is no list of at most {} tokens", kMostTokens));
      return tokens;
    }
    for (const element entry : array) {
      std::int64_t token = 0;
      if (entry.get(token) != simdjson::SUCCESS || token < 0 || token > std::numeric_limits<std::int32_t>::max())
        fail(ErrorCode::kBadFile, fmt::format("'trainable_token_indices' has {}, which is no token", simdjson::minify(entry)));
      tokens.push_back(static_cast<std::int32_t>(token));
    }
    std::vector<std::int32_t> sorted = tokens;
    std::ranges::sort(sorted);
    if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
      fail(ErrorCode::kBadFile, fmt::format("'trainable_token_indices' has {} twice", *twice));
    return tokens;
  }

  void read_token_rows() {
    const auto value = find("trainable_token_indices");
    if (!value || is_off(*value)) return;
    simdjson::dom::object object;
    if (value->get(object) != simdjson::SUCCESS) {
      config.tokens.emplace_back("", read_tokens(*value));
      return;
    }
    for (const auto& [layer, tokens] : object) config.tokens.emplace_back(layer, read_tokens(tokens));
  }

  void read() {
    std::string_view kind;
    if (const auto value = find("peft_type"); value && (value->get(kind) != simdjson::SUCCESS || kind != "LORA"))
      fail(ErrorCode::kUnsupported, fmt::format("'peft_type' is {}, expected \"LORA\"", simdjson::minify(*value)));
    const double rank = number("r", 8, 1, kMostRank);
    expect_whole("r", rank);
    config.rank = static_cast<std::int32_t>(rank);
    config.alpha = number("lora_alpha", 8, -1e9, 1e9);
    config.by_root = flag("use_rslora");
    config.magnitudes = flag("use_dora");
    config.rank_pattern = patterns("rank_pattern", 1, kMostRank);
    for (const auto& its : config.rank_pattern) expect_whole("rank_pattern", its.second);
    config.alpha_pattern = patterns("alpha_pattern", -1e9, 1e9);
    check_others();
    read_targets();
    read_beginning();
    read_parameters();
    read_token_rows();
    for (const std::string_view key : kUnknownKinds)
      if (const auto value = find(key); value && !is_off(*value))
        fail(ErrorCode::kUnsupported, fmt::format("'{}' is set, which this build cannot compute", key));
  }

 private:
  element root_;
};

// The first pattern that is about the module.
double of_pattern(const std::vector<std::pair<std::string, double>>& patterns, std::string_view module, double fallback) {
  const auto found = std::ranges::find_if(patterns, [&](const auto& entry) { return matches_module(entry.first, module); });
  return found == patterns.end() ? fallback : found->second;
}

}  // namespace

Result<PeftConfig> PeftConfig::parse(const std::string& text, std::string path) {
  simdjson::dom::parser parser;
  element root;
  simdjson::dom::object object;
  if (const auto failure = parser.parse(text).get(root); failure != simdjson::SUCCESS)
    return Error{ErrorCode::kBadFile, fmt::format("{}: is not a JSON object: {}", path, simdjson::error_message(failure)), {}};
  if (root.get(object) != simdjson::SUCCESS) return Error{ErrorCode::kBadFile, fmt::format("{}: is not a JSON object", path), {}};
  PeftReader reader(root, std::move(path));
  reader.read();
  if (reader.error) return *reader.error;
  return std::move(reader.config);
}

std::int32_t PeftConfig::rank_of(std::string_view module) const {
  return static_cast<std::int32_t>(of_pattern(rank_pattern, module, rank));
}

double PeftConfig::alpha_of(std::string_view module) const { return of_pattern(alpha_pattern, module, alpha); }

std::vector<std::string_view> PeftConfig::parameters_of(std::string_view module) const {
  std::vector<std::string_view> found;
  for (const std::string_view known : kKnownParameters) {
    if (known != "weight" && !ends_in(module, "experts")) continue;
    if (std::ranges::any_of(parameters, [&](const std::string& name) { return ends_in(fmt::format("{}.{}", module, known), name); }))
      found.insert(found.begin(), known);
  }
  return found;
}

const std::vector<std::int32_t>* PeftConfig::tokens_of(std::string_view module) const {
  const auto found = std::ranges::find_if(tokens, [&](const auto& entry) { return entry.first.empty() || ends_in(module, entry.first); });
  return found == tokens.end() ? nullptr : &found->second;
}

float PeftConfig::scale_of(std::string_view module, std::int32_t its_rank) const {
  return static_cast<float>(alpha_of(module) / (by_root ? std::sqrt(static_cast<double>(its_rank)) : static_cast<double>(its_rank)));
}

bool matches_module(const std::string& pattern, std::string_view module) {
  if (is_plain(pattern)) return ends_in(module, pattern);
  return std::regex_match(module.begin(), module.end(), compiled(pattern));
}

}  // namespace braid::model
