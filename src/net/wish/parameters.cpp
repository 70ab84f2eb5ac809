#include "net/wish/parameters.h"

#include "net/json/fields.h"
#include "net/json/write.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>
#include <spdlog/spdlog.h>
#include <utility>

namespace braid::net::wish {
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

Result<void> read_max_tokens(BodyFields& fields, Value& value, const std::string& path) {
  return store(read_count(value, path, 0), fields.wish.max_tokens);
}

Result<void> read_max_completion_tokens(BodyFields& fields, Value& value, const std::string& path) {
  return store(read_count(value, path, 0), fields.max_completion_tokens);
}

Result<void> read_min_tokens(BodyFields& fields, Value& value, const std::string& path) {
  return store(read_count(value, path, 0), fields.wish.stop.min_tokens);
}

Result<void> read_stop_token_ids(BodyFields& fields, Value& value, const std::string& path) {
  Result<std::vector<TokenId>> ids = read_token_ids(value, path, fields.model);
  if (ids && ids->size() > kMaxStopTokenIds)
    return invalid_argument(fmt::format("'{}' has more than {} ids", path, kMaxStopTokenIds), path);
  return store(std::move(ids), fields.wish.stop.stop_token_ids);
}

Result<void> read_stream_options(BodyFields& fields, Value& value, const std::string& path) {
  if (value.get_if<ValueDict>() == nullptr) return json::wrong_type(path, "an object", value);
  fields.has_stream_options = true;
  for (const auto& [name, target] :
       {std::pair{"include_usage", &fields.wish.include_usage}, std::pair{"continuous_usage_stats", &fields.wish.continuous_usage}}) {
    const Value* flag = value.find(name);
    if (flag == nullptr || flag->is_null()) continue;
    const Result<void> read = store(json::read_bool(*flag, at_key(path, name)), *target);
    if (!read) return read;
  }
  return {};
}

Result<void> read_ignore_eos(BodyFields& fields, Value& value, const std::string& path) {
  return store(json::read_bool(value, path), fields.wish.stop.ignore_eos);
}

Result<void> read_cache_salt(BodyFields& fields, Value& value, const std::string& path) {
  const Result<void> read = store(json::read_string(value, path), fields.wish.cache_salt);
  if (read && fields.wish.cache_salt.size() > kMaxSaltBytes)
    return invalid_argument(fmt::format("'{}' is longer than {} bytes", path, kMaxSaltBytes), path);
  return read;
}

Result<void> read_priority(BodyFields& fields, Value& value, const std::string& path) {
  return store(read_count(value, path, -kMaxPriority, kMaxPriority), fields.priority);
}

Result<void> read_service_tier(BodyFields& fields, Value& value, const std::string& path) {
  static constexpr std::array kTiers = {
      std::pair{std::string_view("auto"), 0},
      std::pair{std::string_view("default"), 0},
      std::pair{std::string_view("scale"), 0},
      std::pair{std::string_view("flex"), kTierPriority},
      std::pair{std::string_view("priority"), -kTierPriority},
  };
  const Result<void> read = store(json::read_string(value, path), fields.wish.service_tier);
  if (!read) return read;
  for (const auto& [name, priority] : kTiers) {
    if (name != fields.wish.service_tier) continue;
    if (priority != 0) fields.wish.priority = priority;
    return {};
  }
  return invalid_argument(fmt::format("'{}' must be one of 'auto', 'default', 'flex', 'priority' and 'scale'", path), path);
}

Result<void> accept_metadata(BodyFields&, Value& value, const std::string& path) {
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

// llama-server's: beside the end, in each chunk.
Result<void> read_timings_per_token(BodyFields& fields, Value& value, const std::string& path) {
  const Result<void> read = store(json::read_bool(value, path), fields.wish.timings_per_token);
  fields.wish.timings = fields.wish.timings || fields.wish.timings_per_token;
  return read;
}

using Call = Wish;

constexpr std::array kCommon = {
    Parameter{"model", accept_string},
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
    Parameter{"timings_per_token", read_timings_per_token},
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

const Parameter* find_parameter(Tables tables, std::string_view name) {
  for (const auto table : tables)
    for (const Parameter& parameter : table)
      if (parameter.name == name) return &parameter;
  return nullptr;
}

// Applies a rule to one value.
struct RuleReader {
  BodyFields& fields;
  Value& value;
  const std::string& path;

  Result<void> operator()(Reader read) const { return read(fields, value, path); }

  Result<void> operator()(const NumberRule& rule) const {
    const Result<float> number = json::read_number(value, path, rule.low, rule.high);
    if (!number) return number.error();
    if (rule.above_low && *number <= rule.low)
      return invalid_argument(fmt::format("'{}' must be above {} and at most {}", path, rule.low, rule.high), path);
    fields.wish.sampling.*rule.field = *number;
    return {};
  }

  Result<void> operator()(const CountRule<SamplingParams>& rule) const {
    return store(read_count(value, path, rule.low, rule.high), fields.wish.sampling.*rule.field);
  }

  Result<void> operator()(const CountRule<Wish>& rule) const {
    return store(read_count(value, path, rule.low, rule.high), fields.wish.*rule.field);
  }

  Result<void> operator()(const FlagRule& rule) const { return store(json::read_bool(value, path), fields.wish.*rule.field); }
};

}  // namespace

std::span<const Parameter> common_parameters() { return kCommon; }

Result<void> read_stop(BodyFields& fields, Value& value, const std::string& path) {
  auto& stops = fields.wish.stop_strings;
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

Result<void> accept_string(BodyFields&, Value& value, const std::string& path) {
  const Result<std::string> text = json::read_string(value, path);
  return text ? Result<void>() : text.error();
}

Result<void> accept_bool(BodyFields&, Value& value, const std::string& path) {
  const Result<bool> flag = json::read_bool(value, path);
  return flag ? Result<void>() : flag.error();
}

Result<void> accept_object(BodyFields&, Value& value, const std::string& path) {
  return value.get_if<ValueDict>() != nullptr ? Result<void>() : json::wrong_type(path, "an object", value);
}

Result<void> read_parameter(BodyFields& fields, std::string_view name, Value& value, const std::string& path, Tables tables) {
  const Parameter* parameter = find_parameter(tables, name);
  if (parameter != nullptr) return std::visit(RuleReader{fields, value, path}, parameter->rule);
  if (fields.model.defaults.strict_parameters)
    return invalid_argument(fmt::format("'{}' is not a parameter that this server knows", path), path);
  SPDLOG_DEBUG("a request's field '{}' is ignored", name);
  return {};
}

Result<void> read_parameters(BodyFields& fields, ValueDict& body, Tables tables) {
  for (auto& [name, value] : body) {
    if (value.is_null()) continue;
    const Result<void> read = read_parameter(fields, name, value, name, tables);
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

}  // namespace braid::net::wish
