#include "app/key_file.h"

#include "app/whole_file.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <limits>
#include <optional>
#include <sstream>
#include <system_error>

namespace braid::app {
namespace {

using net::access::ApiKey;
using net::access::Limits;

constexpr std::size_t kMaxKeys = 4096;  // each request is compared with all of them
constexpr std::size_t kMaxFileBytes = std::size_t{16} << 20U;
constexpr std::size_t kMaxNameBytes = 64;
constexpr std::int32_t kMaxPriority = 100;

bool is_name(std::string_view name) {
  const auto fits = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.'; };
  return name.size() <= kMaxNameBytes && std::all_of(name.begin(), name.end(), fits);
}

bool is_visible(std::string_view word) {
  return std::all_of(word.begin(), word.end(), [](char c) { return c > 0x20 && c < 0x7F; });
}

template <class Integer>
std::string read_number(std::string_view text, Integer least, Integer most, Integer& value) {
  Integer read = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
  if (error != std::errc{} || end != text.data() + text.size() || read < least || read > most)
    return fmt::format("is not a whole number from {} to {}", least, most);
  value = read;
  return {};
}

// What is wrong with `setting`, or nothing.
std::string read_setting(std::string_view setting, net::access::Rules& rules) {
  constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();
  const std::size_t equals = setting.find('=');
  const std::string_view name = setting.substr(0, equals);
  const std::string_view value = equals == std::string_view::npos ? std::string_view() : setting.substr(equals + 1);
  const auto named = [name](const std::string& fault) { return fault.empty() ? fault : fmt::format("{} {}", name, fault); };
  Limits& limits = rules.limits;
  if (name == "requests-per-minute") return named(read_number(value, 0U, kMost, limits.requests_per_minute));
  if (name == "tokens-per-minute") return named(read_number(value, 0U, kMost, limits.tokens_per_minute));
  if (name == "concurrent-requests") return named(read_number(value, 0U, kMost, limits.concurrent_requests));
  if (name == "priority") return named(read_number(value, -kMaxPriority, kMaxPriority, rules.priority));
  if (name == "best-priority") return named(read_number(value, -kMaxPriority, kMaxPriority, rules.best_priority));
  if (setting == "administrator") {
    rules.is_administrator = true;
    return {};
  }
  if (name != "cache-salt")
    return "a word behind the key is none of requests-per-minute=, tokens-per-minute=, concurrent-requests=, priority=, best-priority=, "
           "cache-salt= and administrator";
  rules.cache_salt = value;
  return is_visible(value) ? "" : "cache-salt may have visible ASCII characters only";
}

std::string read_key(std::istringstream& words, const std::string& name, ApiKey& key) {
  key.name = name;
  if (!is_name(name)) return fmt::format("the name may have {} letters, digits, '-', '_' and '.'", kMaxNameBytes);
  std::string secret;
  if (!(words >> secret) || secret.starts_with('#')) return "there is a name and no key";
  if (!is_visible(secret)) return "the key may have visible ASCII characters only";
  key.digest = net::access::digest_of(secret);
  for (std::string word; words >> word && !word.starts_with('#');) {
    std::string fault = read_setting(word, key.rules);
    if (!fault.empty()) return fault;
  }
  return key.rules.priority < key.rules.best_priority ? "priority is better than best-priority" : "";
}

std::string find_double(const std::vector<ApiKey>& keys, const ApiKey& key) {
  for (const ApiKey& other : keys) {
    if (other.name == key.name) return "another line has this name";
    if (other.digest == key.digest) return "another line has this key";
  }
  return {};
}

}  // namespace

Result<std::vector<ApiKey>> parse_api_keys(std::string_view text, const Limits& limits, const std::string& file) {
  std::vector<ApiKey> keys;
  std::istringstream lines{std::string(text)};
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(line);
    std::string name;
    if (!(words >> name) || name.starts_with('#')) continue;
    ApiKey key;
    key.rules.limits = limits;
    std::string fault = read_key(words, name, key);
    if (fault.empty()) fault = find_double(keys, key);
    if (fault.empty() && keys.size() == kMaxKeys) fault = fmt::format("there are more than {} keys", kMaxKeys);
    if (!fault.empty()) return invalid_argument(fmt::format("{}:{}: {}", file, number, fault));
    keys.push_back(std::move(key));
  }
  return keys;
}

Result<std::vector<ApiKey>> load_api_keys(const std::string& file, const Limits& limits) {
  std::vector<ApiKey> keys;
  if (!file.empty()) {
    std::error_code ignored;  // a pipe would keep the loop waiting
    const auto text = std::filesystem::is_regular_file(file, ignored) ? read_whole_file(file, kMaxFileBytes) : std::nullopt;
    if (!text) return invalid_argument(fmt::format("--api-key-file: cannot read '{}'", file));
    if (text->size() > kMaxFileBytes) return invalid_argument(fmt::format("--api-key-file: '{}' is larger than 16 MiB", file));
    Result<std::vector<ApiKey>> parsed = parse_api_keys(*text, limits, file);
    if (!parsed) return parsed;
    if (parsed->empty())
      return invalid_argument(fmt::format("--api-key-file: '{}' has no key: a line is NAME KEY [SETTING=VALUE]...", file));
    keys = std::move(*parsed);
  }
  const char* secret = std::getenv("BRAID_API_KEY");
  if (secret == nullptr || *secret == '\0') return keys;
  if (!is_visible(secret))
    return invalid_argument("BRAID_API_KEY may have visible ASCII characters only: no client could show another key");
  ApiKey key{"environment", net::access::digest_of(secret), {}};
  key.rules.limits = limits;
  if (!find_double(keys, key).empty()) return invalid_argument(fmt::format("'{}' has the name or the key of BRAID_API_KEY", file));
  keys.push_back(std::move(key));
  return keys;
}

}  // namespace braid::app
