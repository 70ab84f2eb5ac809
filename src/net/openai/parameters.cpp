#include <fmt/format.h>
#include <net/json/fields.h>
#include <net/openai/parameters.h>
#include <net/openai/request.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace braid::net::openai {
namespace {

using json::at_index;
using json::at_key;

constexpr std::size_t kMaxStops = 16;
constexpr std::size_t kMaxStopTokenIds = 1024;
constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();

// Stores what was read, or hands on why it was not.
template <class T, class Target>
Result<void> store(Result<T> read, Target& target) {
  if (!read) return read.error();
  target = static_cast<Target>(std::move(*read));
  return {};
}

// An integer of any size at least `low`; what exceeds 32 bits means as much as the largest.
Result<std::int32_t> read_count(const Value& value, const std::string& path, std::int64_t low) {
  const Result<std::int64_t> count = json::read_integer(value, path, low);
  if (!count) return count.error();
  return static_cast<std::int32_t>(std::min(*count, kMaxInt32));
}

Result<void> read_model(Draft& draft, Value& value, const std::string& path) {
  const Result<std::string> name = json::read_string(value, path);
  if (!name) return name.error();
  if (names_model(draft.model, *name)) return {};
  return Error{ErrorCode::kNotFound, fmt::format("the model '{}' does not exist; this server has '{}'", *name, draft.model.id),
               path};
}

Result<void> read_max_tokens(Draft& draft, Value& value, const std::string& path) {
  const Result<std::int32_t> count = read_count(value, path, 1);
  if (!count) return count.error();
  draft.call.max_tokens = *count;
  return {};
}

Result<void> read_max_completion_tokens(Draft& draft, Value& value, const std::string& path) {
  const Result<std::int32_t> count = read_count(value, path, 1);
  if (!count) return count.error();
  draft.max_completion_tokens = *count;
  return {};
}

Result<void> read_min_tokens(Draft& draft, Value& value, const std::string& path) {
  return store(read_count(value, path, 0), draft.call.stop.min_tokens);
}

Result<void> read_temperature(Draft& draft, Value& value, const std::string& path) {
  return store(json::read_number(value, path, 0.0F, 2.0F), draft.call.sampling.temperature);
}

Result<void> read_top_p(Draft& draft, Value& value, const std::string& path) {
  const Result<void> read = store(json::read_number(value, path, 0.0F, 1.0F), draft.call.sampling.top_p);
  if (read && draft.call.sampling.top_p <= 0.0F) return invalid_argument(fmt::format("'{}' must be above 0", path), path);
  return read;
}

Result<void> read_min_p(Draft& draft, Value& value, const std::string& path) {
  return store(json::read_number(value, path, 0.0F, 1.0F), draft.call.sampling.min_p);
}

// -1 is what vLLM's clients send for "all".
Result<void> read_top_k(Draft& draft, Value& value, const std::string& path) {
  const Result<std::int32_t> count = read_count(value, path, -1);
  if (!count) return count.error();
  draft.call.sampling.top_k = std::max(*count, 0);
  return {};
}

Result<void> read_seed(Draft& draft, Value& value, const std::string& path) {
  draft.call.seeded = true;
  return store(json::read_integer(value, path), draft.call.sampling.seed);
}

Result<void> read_stop(Draft& draft, Value& value, const std::string& path) {
  auto& stops = draft.call.stop_strings;
  stops.clear();
  const auto* list = value.get_if<ValueList>();
  if (list == nullptr && value.get_if<std::string>() == nullptr)
    return json::wrong_type(path, "a string or an array of strings", value);
  const ValueList one = list == nullptr ? ValueList{value} : ValueList{};
  const ValueList& items = list == nullptr ? one : *list;
  if (items.size() > kMaxStops)
    return invalid_argument(fmt::format("'{}' has {} strings, at most {} may be given", path, items.size(), kMaxStops), path);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string item_path = list == nullptr ? path : at_index(path, i);
    Result<std::string> stop = json::read_string(items[i], item_path);
    if (!stop) return stop.error();
    if (stop->empty()) return invalid_argument(fmt::format("'{}' is empty: every text contains it", item_path), item_path);
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

Result<void> read_stream(Draft& draft, Value& value, const std::string& path) {
  return store(json::read_bool(value, path), draft.call.stream);
}

Result<void> read_stream_options(Draft& draft, Value& value, const std::string& path) {
  if (value.get_if<ValueDict>() == nullptr) return json::wrong_type(path, "an object", value);
  draft.has_stream_options = true;
  if (const Value* continuous = value.find("continuous_usage_stats"); continuous != nullptr && *continuous == Value(true))
    return invalid_argument("'stream_options.continuous_usage_stats' is not supported", at_key(path, "continuous_usage_stats"));
  const Value* include = value.find("include_usage");
  if (include == nullptr || include->is_null()) return {};
  return store(json::read_bool(*include, at_key(path, "include_usage")), draft.call.include_usage);
}

Result<void> read_ignore_eos(Draft& draft, Value& value, const std::string& path) {
  return store(json::read_bool(value, path), draft.call.stop.ignore_eos);
}

Result<void> read_cache_salt(Draft& draft, Value& value, const std::string& path) {
  return store(json::read_string(value, path), draft.call.cache_salt);
}

Result<void> read_return_token_ids(Draft& draft, Value& value, const std::string& path) {
  return store(json::read_bool(value, path), draft.call.return_token_ids);
}

constexpr std::array kCommon = {
    Parameter{"model", read_model},
    Parameter{"max_tokens", read_max_tokens},
    Parameter{"max_completion_tokens", read_max_completion_tokens},
    Parameter{"min_tokens", read_min_tokens},
    Parameter{"temperature", read_temperature},
    Parameter{"top_p", read_top_p},
    Parameter{"top_k", read_top_k},
    Parameter{"min_p", read_min_p},
    Parameter{"seed", read_seed},
    Parameter{"stop", read_stop},
    Parameter{"stop_token_ids", read_stop_token_ids},
    Parameter{"stream", read_stream},
    Parameter{"stream_options", read_stream_options},
    Parameter{"ignore_eos", read_ignore_eos},
    Parameter{"cache_salt", read_cache_salt},
    Parameter{"return_token_ids", read_return_token_ids},
};

const Parameter* find_parameter(std::span<const std::span<const Parameter>> tables, std::string_view name) {
  for (const auto table : tables)
    for (const Parameter& parameter : table)
      if (parameter.name == name) return &parameter;
  return nullptr;
}

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
    const Result<void> read = parameter->read(draft, value, name);
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
      const Result<std::int64_t> wrong = json::read_integer(item, at_index(path, ids.size()), 0, last);
      return wrong.error();
    }
    ids.push_back(static_cast<TokenId>(*id));
  }
  return ids;
}

}  // namespace braid::net::openai
