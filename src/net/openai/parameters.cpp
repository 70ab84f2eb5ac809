#include "net/openai/parameters.h"

#include "net/json/fields.h"
#include "net/json/write.h"
#include "net/openai/request.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>
#include <spdlog/spdlog.h>
#include <utility>

namespace braid::net::openai {
namespace {

using json::at_index;
using json::at_key;

constexpr std::size_t kMaxStops = 16;
constexpr std::size_t kMaxStopBytes = 4096;  // each choice has its own copy of these
constexpr std::size_t kMaxSaltBytes = 1024;
constexpr std::size_t kMaxStopTokenIds = 1024;
constexpr std::int32_t kMaxPriority = 100;
constexpr std::int32_t kTierPriority = 50;  // of the tiers that go before or after the others
constexpr std::size_t kMaxMetadata = 16;
constexpr std::size_t kMaxMetadataKey = 64;  // characters, like the next
constexpr std::size_t kMaxMetadataValue = 512;
constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();

// Stores what was read, or hands on why it was not.
template <class T, class Target>
Result<void> store(Result<T> read, Target& target) {
  if (!read) return read.error();
  target = static_cast<Target>(std::move(*read));
  return {};
}

Result<std::int32_t> read_count(const Value& value, const std::string& path, std::int64_t low,
                                std::int64_t high = std::numeric_limits<std::int64_t>::max()) {
  const Result<std::int64_t> count = json::read_integer(value, path, low, high);
  if (!count) return count.error();
  return static_cast<std::int32_t>(std::min(*count, kMaxInt32));
}

Result<void> read_model(Draft& draft, Value& value, const std::string& path) {
  const Result<std::string> name = json::read_string(value, path);
  if (!name) return name.error();
  if (names_model(draft.model, *name)) return {};
  return Error{ErrorCode::kNotFound, fmt::format("the model '{}' does not exist; this server has '{}'", *name, draft.model.id), path};
}

Result<void> read_max_tokens(Draft& draft, Value& value, const std::string& path) {
  return store(read_count(value, path, 0), draft.call.max_tokens);
}

Result<void> read_max_completion_tokens(Draft& draft, Value& value, const std::string& path) {
  return store(read_count(value, path, 0), draft.max_completion_tokens);
}

Result<void> read_min_tokens(Draft& draft, Value& value, const std::string& path) {
  return store(read_count(value, path, 0), draft.call.stop.min_tokens);
}

Result<void> read_stop(Draft& draft, Value& value, const std::string& path) {
  auto& stops = draft.call.stop_strings;
  stops.clear();
  const auto* list = value.get_if<ValueList>();
  if (list == nullptr && value.get_if<std::string>() == nullptr) return json::wrong_type(path, "a string or an array of strings", value);
  const ValueList one = list == nullptr ? ValueList{value} : ValueList{};
  const ValueList& items = list == nullptr ? one : *list;
  if (items.size() > kMaxStops)
    return invalid_argument(fmt::format("'{}' has {} strings, at most {} may be given", path, items.size(), kMaxStops), path);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string item_path = list == nullptr ? path : at_index(path, i);
    Result<std::string> stop = json::read_string(items[i], item_path);
    if (!stop) return stop.error();
    if (stop->size() > kMaxStopBytes)
      return invalid_argument(fmt::format("'{}' is longer than {} bytes", item_path, kMaxStopBytes), item_path);
    if (stop->empty()) continue;  // what clients send for "none"
    stops.push_back(std::move(*stop));
  }
  return {};
}

Result<void> read_stop_token_ids(Draft& draft, Value& value, const std::string& path) {
  Result<std::vector<TokenId>> ids = read_token_ids(value, path, draft.model);
  if (ids && ids->size() > kMaxStopTokenIds)
    return invalid_argument(fmt::format("'{}' has more than {} ids", path, kMaxStopTokenIds), path);
  return store(std::move(ids), draft.call.stop.stop_token_ids);
}

Result<void> read_stream_options(Draft& draft, Value& value, const std::string& path) {
  if (value.get_if<ValueDict>() == nullptr) return json::wrong_type(path, "an object", value);
  draft.has_stream_options = true;
  for (const auto& [name, target] :
       {std::pair{"include_usage", &draft.call.include_usage}, std::pair{"continuous_usage_stats", &draft.call.continuous_usage}}) {
    const Value* flag = value.find(name);
    if (flag == nullptr || flag->is_null()) continue;
    const Result<void> read = store(json::read_bool(*flag, at_key(path, name)), *target);
    if (!read) return read;
  }
  return {};
}

Result<void> read_ignore_eos(Draft& draft, Value& value, const std::string& path) {
  return store(json::read_bool(value, path), draft.call.stop.ignore_eos);
}

Result<void> read_cache_salt(Draft& draft, Value& value, const std::string& path) {
  const Result<void> read = store(json::read_string(value, path), draft.call.cache_salt);
  if (read && draft.call.cache_salt.size() > kMaxSaltBytes)
    return invalid_argument(fmt::format("'{}' is longer than {} bytes", path, kMaxSaltBytes), path);
  return read;
}

Result<void> read_priority(Draft& draft, Value& value, const std::string& path) {
  return store(read_count(value, path, -kMaxPriority, kMaxPriority), draft.priority);
}

Result<void> read_service_tier(Draft& draft, Value& value, const std::string& path) {
  static constexpr std::array kTiers = {
      std::pair{std::string_view("auto"), 0},
      std::pair{std::string_view("default"), 0},
      std::pair{std::string_view("scale"), 0},
      std::pair{std::string_view("flex"), kTierPriority},
      std::pair{std::string_view("priority"), -kTierPriority},
  };
  const Result<void> read = store(json::read_string(value, path), draft.call.service_tier);
  if (!read) return read;
  for (const auto& [name, priority] : kTiers) {
    if (name != draft.call.service_tier) continue;
    if (priority != 0) draft.call.priority = priority;
    return {};
  }
  return invalid_argument(fmt::format("'{}' must be one of 'auto', 'default', 'flex', 'priority' and 'scale'", path), path);
}

// Fields that say nothing to a server which keeps nothing; their form is checked.
Result<void> accept_string(Draft&, Value& value, const std::string& path) {
  const Result<std::string> text = json::read_string(value, path);
  return text ? Result<void>() : text.error();
}

Result<void> accept_bool(Draft&, Value& value, const std::string& path) {
  const Result<bool> flag = json::read_bool(value, path);
  return flag ? Result<void>() : flag.error();
}

Result<void> accept_metadata(Draft&, Value& value, const std::string& path) {
  const auto* members = value.get_if<ValueDict>();
  if (members == nullptr) return json::wrong_type(path, "an object", value);
  if (members->size() > kMaxMetadata)
    return invalid_argument(fmt::format("'{}' has {} members, at most {} may be given", path, members->size(), kMaxMetadata), path);
  for (const auto& [key, item] : *members) {
    const std::string item_path = at_key(path, key);
    const Result<std::string> text = json::read_string(item, item_path);
    if (!text) return text.error();
    if (json::count_characters(key) <= kMaxMetadataKey && json::count_characters(*text) <= kMaxMetadataValue) continue;
    return invalid_argument(
        fmt::format("'{}' is too long: a key may have {} characters and a value {}", item_path, kMaxMetadataKey, kMaxMetadataValue),
        item_path);
  }
  return {};
}

using Call = GenerationCall;

constexpr std::array kCommon = {
    Parameter{"model", read_model},
    Parameter{"n", CountRule<Call>{&Call::choices, 1, kMaxChoices}},
    Parameter{"max_tokens", read_max_tokens},
    Parameter{"max_completion_tokens", read_max_completion_tokens},
    Parameter{"min_tokens", read_min_tokens},
    Parameter{"stop", read_stop},
    Parameter{"stop_token_ids", read_stop_token_ids},
    Parameter{"include_stop_str_in_output", FlagRule{&Call::include_stop_string}},
    Parameter{"ignore_eos", read_ignore_eos},
    Parameter{"prompt_logprobs", CountRule<Call>{&Call::prompt_logprobs, 0, kMaxTopLogprobs}},
    Parameter{"stream", FlagRule{&Call::stream}},
    Parameter{"stream_options", read_stream_options},
    Parameter{"timings", FlagRule{&Call::timings}},
    Parameter{"timings_per_token", FlagRule{&Call::timings}},  // llama-server's name
    Parameter{"return_token_ids", FlagRule{&Call::return_token_ids}},
    Parameter{"cache_salt", read_cache_salt},
    Parameter{"priority", read_priority},
    Parameter{"service_tier", read_service_tier},
    Parameter{"user", accept_string},
    Parameter{"safety_identifier", accept_string},
    Parameter{"prompt_cache_key", accept_string},
    Parameter{"store", accept_bool},
    Parameter{"metadata", accept_metadata},
};

const Parameter* find_parameter(std::span<const std::span<const Parameter>> tables, std::string_view name) {
  for (const auto table : tables)
    for (const Parameter& parameter : table)
      if (parameter.name == name) return &parameter;
  return nullptr;
}

// Applies a rule to one value.
struct RuleReader {
  Draft& draft;
  Value& value;
  const std::string& path;

  Result<void> operator()(Reader read) const { return read(draft, value, path); }

  Result<void> operator()(const NumberRule& rule) const {
    const Result<float> number = json::read_number(value, path, rule.low, rule.high);
    if (!number) return number.error();
    if (rule.above_low && *number <= rule.low)
      return invalid_argument(fmt::format("'{}' must be above {} and at most {}", path, rule.low, rule.high), path);
    draft.call.sampling.*rule.field = *number;
    return {};
  }

  Result<void> operator()(const CountRule<SamplingParams>& rule) const {
    return store(read_count(value, path, rule.low, rule.high), draft.call.sampling.*rule.field);
  }

  Result<void> operator()(const CountRule<GenerationCall>& rule) const {
    return store(read_count(value, path, rule.low, rule.high), draft.call.*rule.field);
  }

  Result<void> operator()(const FlagRule& rule) const { return store(json::read_bool(value, path), draft.call.*rule.field); }
};

}  // namespace

std::span<const Parameter> common_parameters() { return kCommon; }

Result<void> read_parameters(Draft& draft, ValueDict& body, std::span<const std::span<const Parameter>> tables) {
  for (auto& [name, value] : body) {
    if (value.is_null()) continue;
    const Parameter* parameter = find_parameter(tables, name);
    if (parameter == nullptr) {
      SPDLOG_DEBUG("a request's field '{}' is ignored", name);
      continue;
    }
    const Result<void> read = std::visit(RuleReader{draft, value, name}, parameter->rule);
    if (!read) return read.error();
  }
  return {};
}

Result<std::vector<TokenId>> read_token_ids(const Value& value, const std::string& path, const ServedModel& model) {
  const auto* list = value.get_if<ValueList>();
  if (list == nullptr) return json::wrong_type(path, "an array of token ids", value);
  std::vector<TokenId> ids;
  ids.reserve(list->size());
  const std::int64_t last = model.codec->vocab_size() - 1;
  for (const Value& item : *list) {
    const auto* id = item.get_if<std::int64_t>();  // the path is made only for an error: a prompt may have 100,000 ids
    if (id == nullptr || *id < 0 || *id > last) {
      const Result<std::int64_t> other = json::read_integer(item, at_index(path, ids.size()), 0, last);  // 16.0, or none
      if (!other) return other.error();
      ids.push_back(static_cast<TokenId>(*other));
      continue;
    }
    ids.push_back(static_cast<TokenId>(*id));
  }
  return ids;
}

}  // namespace braid::net::openai
