#include "net/training/job_request.h"

#include "net/generation/call.h"
#include "net/generation/prompts.h"
#include "net/json/fields.h"
#include "net/openai/request.h"
#include "net/wish/parameters.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace braid::net::training {
namespace {

constexpr std::size_t kMostExamples = 100'000;
constexpr std::size_t kMostName = 64;
constexpr std::int64_t kMostEpochs = 100'000;
constexpr float kMostNumber = 1e6F;
constexpr std::int32_t kLoraEpochs = 10;
constexpr double kLoraRate = 1e-3;
constexpr std::int64_t kMostBatch = 1024;
constexpr float kLeastAlpha = 1e-3F;
constexpr float kMostAlpha = 1e4F;
constexpr std::size_t kMostModules = 16;

// Parts of a path that lead nowhere else.
bool may_be_folder(std::string_view name) {
  return !name.empty() && name.size() <= kMostName && name.front() != '.' && std::ranges::all_of(name, [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
  });
}

Error at(const std::string& path, const Error& error) { return {error.code, fmt::format("{}: {}", path, error.message), path}; }

class JobReader {
 public:
  JobReader(Value& body, const ServedModel& model) : body_(body), model_(model) {}

  Result<JobRequest> read() {
    for (const auto& [key, ignored] : *body_.get_if<ValueDict>()) {
      constexpr std::array<std::string_view, 13> kKnown = {"model", "name",     "data",       "epochs", "learning_rate",
                                                           "l2",    "held_out", "head",       "resume", "checkpoint_every",
                                                           "user",  "model_id", "lora_config"};
      if (std::ranges::find(kKnown, key) == kKnown.end()) return invalid_argument(fmt::format("'{}' is not known here", key), key);
    }
    Result<void> read = read_name();
    if (read) read = read_head();
    if (read) read = read_lora_options();
    if (read) read = read_data();
    if (read) read = read_options();
    if (!read) return read.error();
    return std::move(request_);
  }

 private:
  Value* member(std::string_view key) {
    Value* const value = find_member(*body_.get_if<ValueDict>(), key);
    return value == nullptr || value->is_null() ? nullptr : value;
  }

  Result<void> read_name() {
    const Value* const value = member("name");
    if (value == nullptr) return invalid_argument("'name' is missing: what the adapter that comes out is called", "name");
    auto name = json::read_string(*value, "name");
    if (!name) return name.error();
    if (!may_be_folder(*name))
      return invalid_argument(fmt::format("'name' must have 1 to {} letters, digits, dots, dashes and underscores", kMostName), "name");
    request_.adapter = std::move(*name);
    return {};
  }

  Result<void> read_head() {
    const Value* const value = member("head");
    if (value == nullptr || *value == Value("linear")) return {};
    return invalid_argument("'head' must be 'linear': nothing else is fitted by this build", "head");
  }

  Result<void> read_lora_options() {
    const Value* const value = member("lora_config");
    if (value == nullptr) return {};
    const auto* const dict = value->get_if<ValueDict>();
    if (dict == nullptr) return json::wrong_type("lora_config", "an object", *value);
    LoraOptions& lora = request_.lora.emplace();
    request_.fit.epochs = kLoraEpochs;
    request_.fit.learning_rate = kLoraRate;
    request_.fit.l2 = 0.0;
    for (const auto& [key, given] : *dict) {
      const Result<void> read = read_lora_option(key, given, json::at_key("lora_config", key), lora);
      if (!read) return read;
    }
    return {};
  }

  static Result<void> read_lora_option(const std::string& key, const Value& value, const std::string& path, LoraOptions& lora) {
    if (value.is_null()) return {};
    const auto integer = [&](std::int64_t least, std::int64_t most, auto& out) -> Result<void> {
      const auto number = json::read_integer(value, path, least, most);
      if (!number) return number.error();
      out = static_cast<std::remove_reference_t<decltype(out)>>(*number);
      return {};
    };
    if (key == "rank") return integer(1, LoraShape::kMostRank, lora.shape.rank);
    if (key == "batch_size") return integer(1, kMostBatch, lora.batch);
    if (key == "seed") return integer(0, std::numeric_limits<std::int64_t>::max(), lora.seed);
    if (key == "layers") {
      std::int64_t layers = 1;
      const Result<void> read = integer(1, kMostEpochs, layers);
      if (read && layers > 1) return invalid_argument("'lora_config.layers' must be 1: LoRA is trained on the last layer", path);
      return read;
    }
    if (key == "alpha") {
      const auto alpha = json::read_number(value, path, kLeastAlpha, kMostAlpha);
      if (!alpha) return alpha.error();
      lora.shape.alpha = *alpha;
      return {};
    }
    if (key != "target_modules") return invalid_argument(fmt::format("'{}' is not known here", path), path);
    const auto* const list = value.get_if<ValueList>();
    if (list == nullptr || list->empty() || list->size() > kMostModules) return json::wrong_type(path, "a list of names of modules", value);
    lora.shape.modules.clear();
    for (std::size_t i = 0; i < list->size(); ++i) {
      auto name = json::read_string((*list)[i], json::at_index(path, i));
      if (!name) return name.error();
      lora.shape.modules.push_back(std::move(*name));
    }
    return {};
  }

  Result<void> read_data() {
    Value* const data = member("data");
    auto* const list = data != nullptr ? data->get_if<ValueList>() : nullptr;
    if (data == nullptr) return invalid_argument("'data' is missing", "data");
    if (list == nullptr || list->empty()) return json::wrong_type("data", "a list of examples", *data);
    if (list->size() > kMostExamples)
      return invalid_argument(fmt::format("there are {} examples, at most {} may be given", list->size(), kMostExamples), "data");
    for (std::size_t i = 0; i < list->size(); ++i) {
      const std::string path = json::at_index("data", i);
      auto example = read_example((*list)[i], path);
      if (!example) return example.error();
      const Example& first = request_.examples.empty() ? *example : request_.examples.front();
      if (example->rejected.has_value() != first.rejected.has_value())
        return invalid_argument(fmt::format("'{}' is of another kind than the examples before it", path), path);
      request_.examples.push_back(*example);
    }
    return {};
  }

  // {"chosen", "rejected"}, or {"input", "score"}.
  Result<Example> read_example(Value& value, const std::string& path) {
    auto* const dict = value.get_if<ValueDict>();
    if (dict == nullptr) return json::wrong_type(path, "an object", value);
    const bool is_pair = value.find("chosen") != nullptr;
    const std::array<const char*, 2> names = is_pair ? std::array{"chosen", "rejected"} : std::array{"input", "score"};
    for (const char* name : names)
      if (value.find(name) == nullptr)
        return invalid_argument(
            fmt::format("'{}' is missing: an example has chosen and rejected, or input and score", json::at_key(path, name)),
            json::at_key(path, name));
    Example example;
    auto first = text_of(*find_member(*dict, names[0]), json::at_key(path, names[0]));
    if (!first) return first.error();
    example.text = *first;
    if (!is_pair) {
      const auto score = json::read_number(*value.find("score"), json::at_key(path, "score"), -kMostNumber, kMostNumber);
      if (!score) return score.error();
      example.score = *score;
      return example;
    }
    const auto second = text_of(*find_member(*dict, "rejected"), json::at_key(path, "rejected"));
    if (!second) return second.error();
    if (*second == example.text) return invalid_argument(fmt::format("the two texts of '{}' are the same", path), path);
    example.rejected = *second;
    return example;
  }

  // Its place among the texts.
  Result<std::size_t> text_of(Value& value, const std::string& path) {
    auto ids = tokens_of(value, path);
    if (!ids) return ids.error();
    if (ids->empty() || std::cmp_greater(ids->size(), model_.context_length))
      return invalid_argument(fmt::format("'{}' has {} tokens; the model reads 1 to {}", path, ids->size(), model_.context_length), path);
    const auto [known, is_new] = places_.try_emplace(std::move(*ids), request_.texts.size());
    if (is_new) request_.texts.push_back(known->first);
    return known->second;
  }

  Result<std::vector<TokenId>> tokens_of(Value& value, const std::string& path) const {
    if (const auto* text = value.get_if<std::string>()) {
      auto ids = model_.codec->encode(*text, {.add_special = true, .parse_special = true});
      return ids ? std::move(ids) : Result<std::vector<TokenId>>(at(path, ids.error()));
    }
    const auto* list = value.get_if<ValueList>();
    if (list == nullptr || list->empty()) return json::wrong_type(path, "a text, a list of messages, or token ids", value);
    if (list->front().number()) return wish::read_token_ids(value, path, model_);
    Value chat(ValueDict{{"messages", std::move(value)}, {"add_generation_prompt", false}});
    auto wish = openai::read_chat(chat, model_);
    if (!wish) return at(path, wish.error());
    if (!wish->images.empty()) return invalid_argument(fmt::format("{}: images are no part of an example", path), path);
    GenerationCall call(std::move(*wish));
    auto prompts = encode_prompts(model_, call);
    if (!prompts) return at(path, prompts.error());
    return std::move(prompts->front());
  }

  Result<void> read_options() {
    FitOptions& fit = request_.fit;
    if (const Value* value = member("epochs")) {
      const auto epochs = json::read_integer(*value, "epochs", 1, kMostEpochs);
      if (!epochs) return epochs.error();
      fit.epochs = static_cast<std::int32_t>(*epochs);
    }
    if (const Value* value = member("checkpoint_every")) {
      const auto epochs = json::read_integer(*value, "checkpoint_every", 1, kMostEpochs);
      if (!epochs) return epochs.error();
      request_.checkpoint_every = static_cast<std::int32_t>(*epochs);
    }
    for (const auto& [name, field, most] :
         {std::tuple{"learning_rate", &FitOptions::learning_rate, 1.0F}, std::tuple{"l2", &FitOptions::l2, 1e3F}}) {
      const Value* value = member(name);
      if (value == nullptr) continue;
      const auto number = json::read_number(*value, name, 0.0F, most);
      if (!number) return number.error();
      fit.*field = static_cast<double>(*number);
    }
    if (const Value* value = member("held_out")) {
      const auto share = json::read_number(*value, "held_out", 0.0F, 0.5F);
      if (!share) return share.error();
      fit.held_out = static_cast<std::size_t>(std::floor(static_cast<double>(*share) * static_cast<double>(request_.examples.size())));
    }
    if (const Value* value = member("resume")) {
      const auto resumes = json::read_bool(*value, "resume");
      if (!resumes) return resumes.error();
      request_.resumes = *resumes;
    }
    return {};
  }

  Value& body_;
  const ServedModel& model_;
  JobRequest request_;
  std::map<std::vector<TokenId>, std::size_t> places_;
};

}  // namespace

Result<JobRequest> read_job(Value& body, const ServedModel& model) { return JobReader(body, model).read(); }

}  // namespace braid::net::training
