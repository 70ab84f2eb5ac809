// Further names under which llama-server, vLLM and SGLang know what is served here. What would change the answer and is not served
// stands in refused_parameters.cpp.
#include "net/json/fields.h"
#include "net/wish/parameters.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>
#include <string>
#include <utility>

namespace braid::net::wish {
namespace {

using json::at_index;

constexpr std::int32_t kNoLimit = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t kMaxPatterns = 4;
constexpr std::size_t kMaxPatternBytes = 1024;

// Below zero: until the context is full.
Result<void> read_n_predict(BodyFields& fields, Value& value, const std::string& path) {
  const Result<std::int64_t> count = json::read_integer(value, path, -2);
  if (!count) return count.error();
  fields.wish.max_tokens = *count < 0 ? kNoLimit : static_cast<std::int32_t>(std::min<std::int64_t>(*count, kNoLimit));
  return {};
}

Result<void> read_n_probs(BodyFields& fields, Value& value, const std::string& path) {
  const Result<void> read = read_top_logprobs(fields, value, path);
  if (!read) return read;
  fields.logprobs = *fields.top_logprobs > 0;
  fields.wish.sampling.top_logprobs = fields.logprobs ? *fields.top_logprobs : -1;
  return {};
}

Result<void> read_include_reasoning(BodyFields& fields, Value& value, const std::string& path) {
  const Result<bool> wanted = json::read_bool(value, path);
  if (!wanted) return wanted.error();
  fields.wish.hides_reasoning = !*wanted;
  return {};
}

// A pattern or several.
Result<void> read_stop_regex(BodyFields& fields, Value& value, const std::string& path) {
  const auto* list = value.get_if<ValueList>();
  if (list == nullptr && value.get_if<std::string>() == nullptr) return json::wrong_type(path, "a string or an array of strings", value);
  const std::size_t count = list != nullptr ? list->size() : 1;
  if (count > kMaxPatterns)
    return invalid_argument(fmt::format("'{}' has {} patterns, at most {} may be given", path, count, kMaxPatterns), path);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string item_path = list != nullptr ? at_index(path, i) : path;
    Result<std::string> pattern = json::read_string(list != nullptr ? (*list)[i] : value, item_path);
    if (!pattern) return pattern.error();
    if (pattern->size() > kMaxPatternBytes)
      return invalid_argument(fmt::format("'{}' is longer than {} bytes", item_path, kMaxPatternBytes), item_path);
    if (!pattern->empty()) fields.wish.stop_patterns.push_back(std::move(*pattern));
  }
  return {};
}

struct SamplerName {
  std::string_view name;
  char letter;  // of llama-server's short form
};

constexpr std::array<SamplerName, 9> kSamplerNames = {{{"penalties", 'e'},
                                                       {"dry", 'd'},
                                                       {"top_n_sigma", 's'},
                                                       {"top_k", 'k'},
                                                       {"typ_p", 'y'},
                                                       {"top_p", 'p'},
                                                       {"min_p", 'm'},
                                                       {"xtc", 'x'},
                                                       {"temperature", 't'}}};

// By SamplerStep.
constexpr std::array<std::string_view, 7> kSteps = {"top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"};

Result<std::string> sampler_name(const std::string& text, const std::string& path) {
  if (text == "typical_p") return std::string("typ_p");
  for (const SamplerName& known : kSamplerNames)
    if (text == known.name || (text.size() == 1 && text.front() == known.letter)) return std::string(known.name);
  return invalid_argument(fmt::format("'{}' is '{}', which is no sampler of this server", path, text), path);
}

// A list of names, or llama-server's short form with a letter for each.
Result<void> read_samplers(BodyFields& fields, Value& value, const std::string& path) {
  std::vector<std::pair<std::string, std::string>> given;  // and the path of each
  if (const auto* letters = value.get_if<std::string>()) {
    for (const char letter : *letters) given.emplace_back(std::string(1, letter), path);
  } else if (const auto* list = value.get_if<ValueList>()) {
    for (std::size_t i = 0; i < list->size(); ++i) {
      Result<std::string> name = json::read_string((*list)[i], at_index(path, i));
      if (!name) return name.error();
      given.emplace_back(std::move(*name), at_index(path, i));
    }
  } else {
    return json::wrong_type(path, "an array of strings", value);
  }
  std::vector<std::string> names;
  for (const auto& [text, item_path] : given) {
    Result<std::string> name = sampler_name(text, item_path);
    if (!name) return name.error();
    if (std::find(names.begin(), names.end(), *name) != names.end())
      return invalid_argument(fmt::format("'{}' names '{}' a second time", item_path, *name), item_path);
    const bool cuts = std::find(kSteps.begin(), kSteps.end(), *name) != kSteps.end();
    const bool late = !cuts && !names.empty() && names.back() != "penalties" && names.back() != "dry";
    if (late || (*name == "penalties" && !names.empty()))
      return invalid_argument(fmt::format("'{}': 'penalties' and then 'dry' come before all other samplers here", item_path), item_path);
    names.push_back(std::move(*name));
  }
  if (!names.empty()) fields.samplers = std::move(names);
  return {};
}

constexpr std::array kOthers = {
    // llama-server
    Parameter{"n_predict", read_n_predict},
    Parameter{"n_probs", read_n_probs},
    Parameter{"n_cmpl", CountRule<Wish>{&Wish::choices, 1, kMaxChoices}},
    Parameter{"samplers", read_samplers},
    Parameter{"return_progress", FlagRule{&Wish::prompt_progress}},
    Parameter{"cache_prompt", FlagRule{&Wish::reads_cache}},
    Parameter{"return_tokens", FlagRule{&Wish::return_token_ids}},
    // SGLang
    Parameter{"regex", read_regex},
    Parameter{"ebnf", read_grammar},
    Parameter{"stop_regex", read_stop_regex},
    Parameter{"no_stop_trim", FlagRule{&Wish::include_stop_string}},
    // vLLM
    Parameter{"include_reasoning", read_include_reasoning},
};

}  // namespace

std::span<const Parameter> other_server_parameters() { return kOthers; }

Result<void> order_samplers(BodyFields& fields) {
  if (!fields.samplers) return {};
  SamplingParams& sampling = fields.wish.sampling;
  const auto named = [&](std::string_view name) {
    return std::find(fields.samplers->begin(), fields.samplers->end(), name) != fields.samplers->end();
  };
  if (!named("penalties")) {
    sampling.repetition_penalty = 1.0F;
    sampling.presence_penalty = 0.0F;
    sampling.frequency_penalty = 0.0F;
  }
  if (!named("dry")) sampling.dry_multiplier = 0.0F;
  for (const std::string& name : *fields.samplers) {
    const auto* const step = std::find(kSteps.begin(), kSteps.end(), name);
    if (step != kSteps.end()) sampling.steps.push_back(static_cast<SamplerStep>(step - kSteps.begin()));
  }
  if (!named("temperature") || sampling.steps.empty()) {  // then the model's own distribution is drawn from
    sampling.temperature = 1.0F;
    if (sampling.steps.empty()) sampling.steps.push_back(SamplerStep::kTemperature);
  }
  return {};
}

}  // namespace braid::net::wish
