#include "model/families/folder_config.h"

#include <cstdlib>
#include <fmt/format.h>
#include <utility>

namespace braid::model {
namespace {

constexpr std::string_view kWrapped[] = {"text_config", "llm_config", "language_config"};

// What wrapped configurations leave out where it is as transformers has it for the type.
constexpr std::pair<std::string_view, std::string_view> kDefaults[] = {
    {"llama", R"({"hidden_size":4096,"intermediate_size":11008,"num_hidden_layers":32,"num_attention_heads":32,"vocab_size":32000,)"
              R"("max_position_embeddings":2048,"rms_norm_eps":1e-6,"hidden_act":"silu"})"},
    {"mistral", R"({"hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,)"
                R"("vocab_size":32000,"max_position_embeddings":131072,"rms_norm_eps":1e-6,"sliding_window":4096,"hidden_act":"silu"})"},
    {"qwen2", R"({"hidden_size":4096,"intermediate_size":22016,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":32,)"
              R"("vocab_size":151936,"max_position_embeddings":32768,"rms_norm_eps":1e-6,"use_sliding_window":false,"hidden_act":"silu"})"},
    {"qwen3", R"({"hidden_size":4096,"intermediate_size":22016,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":32,)"
              R"("head_dim":128,"vocab_size":151936,"max_position_embeddings":32768,"rms_norm_eps":1e-6,"use_sliding_window":false})"},
    {"gemma3_text",
     R"({"hidden_size":2304,"intermediate_size":9216,"num_hidden_layers":26,"num_attention_heads":8,"num_key_value_heads":4,)"
     R"("head_dim":256,"vocab_size":262208,"max_position_embeddings":131072,"rms_norm_eps":1e-6,"sliding_window":4096})"},
    {"lfm2", R"({"hidden_size":2560,"intermediate_size":12288,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,)"
             R"("vocab_size":65536,"max_position_embeddings":128000,"norm_eps":1e-5})"},
};

std::string text_of(const simdjson::dom::element& object, std::string_view key) {
  std::string_view text;
  return object[key].get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}

// MiniCPM-V's before 4.6 write the keys of their language model beside their own; which that is follows from their version.
std::string model_type_within(const simdjson::dom::element& root) {
  const std::string type = text_of(root, "model_type");
  if (type != "minicpmv" && type != "minicpmo") return {};
  double version = 0.0;
  if (root["version"].get(version) != simdjson::SUCCESS) version = std::strtod(text_of(root, "version").c_str(), nullptr);
  constexpr std::pair<double, std::string_view> kVersions[] = {{2.6, "qwen2"}, {4.0, "llama"}, {4.5, "qwen3"}};
  for (const auto& [known, family] : kVersions)
    if (version == known) return std::string(family);
  return {};
}

}  // namespace

FolderConfig::FolderConfig(const std::string& text, std::string path)
    : parser_(std::make_shared<simdjson::dom::parser>()), path_(std::move(path)) {
  simdjson::dom::object object;
  const auto failure = parser_->parse(text).get(root_);
  if (failure != simdjson::SUCCESS || root_.get(object) != simdjson::SUCCESS) {
    fail(ErrorCode::kBadFile,
         failure == simdjson::SUCCESS ? "is not a JSON object" : fmt::format("is not JSON: {}", error_message(failure)));
    root_ = parser_->parse("{}", 2);
  }
  outer_root_ = root_;
  outer_type_ = model_type_ = text_of(root_, "model_type");
  unwrap();
  if (model_type_.empty()) fail(ErrorCode::kBadFile, "names no 'model_type'");
}

FolderConfig::FolderConfig(simdjson::dom::element root, const FolderConfig& whole, std::string_view name)
    : parser_(whole.parser_), root_(root), outer_root_(root), path_(whole.path_), prefix_(fmt::format("{}{}.", whole.prefix_, name)) {}

void FolderConfig::unwrap() {
  for (const std::string_view name : kWrapped) {
    simdjson::dom::element inner;
    simdjson::dom::object object;
    if (root_[name].get(inner) != simdjson::SUCCESS || inner.get(object) != simdjson::SUCCESS) continue;
    root_ = inner;
    prefix_ = fmt::format("{}.", name);
    wrapped_ = true;
    if (const std::string own = text_of(inner, "model_type"); !own.empty()) model_type_ = own;
    add_defaults();
    return;
  }
  if (std::string own = model_type_within(root_); !own.empty()) {
    wrapped_ = true;
    model_type_ = std::move(own);
    add_defaults();
  }
}

void FolderConfig::add_defaults() {
  for (const auto& [type, values] : kDefaults) {
    if (type != model_type_) continue;
    default_parser_ = std::make_shared<simdjson::dom::parser>();
    defaults_ = default_parser_->parse(values.data(), values.size());
  }
}

void FolderConfig::fail(ErrorCode code, const std::string& message) {
  if (!error) error = Error{code, fmt::format("{}: {}", path_, message), {}};
}

std::optional<simdjson::dom::element> FolderConfig::find(Names names) const {
  bool is_null = false;
  for (const std::string_view name : names) {
    simdjson::dom::element value;
    if (root_[name].get(value) != simdjson::SUCCESS) continue;
    if (!value.is_null()) return value;
    is_null = true;
  }
  if (default_parser_ == nullptr || is_null) return std::nullopt;
  for (const std::string_view name : names) {
    simdjson::dom::element value;
    if (defaults_[name].get(value) == simdjson::SUCCESS) return value;
  }
  return std::nullopt;
}

std::int64_t FolderConfig::count(Names names, std::optional<std::int64_t> fallback, std::int64_t least, std::int64_t most) {
  const auto value = find(names);
  if (!value && fallback) return *fallback;
  std::int64_t number = 0;
  if (!value) {
    fail(ErrorCode::kBadFile, fmt::format("the key {} is missing", first(names)));
  } else if (value->get(number) != simdjson::SUCCESS || number < least || number > most) {
    fail(ErrorCode::kBadFile,
         fmt::format("{} is {}, expected a whole number from {} to {}", first(names), simdjson::minify(*value), least, most));
  } else {
    return number;
  }
  return fallback.value_or(least);
}

std::vector<std::int64_t> FolderConfig::counts(Names names, std::optional<std::int64_t> fallback, std::int64_t least, std::int64_t most) {
  simdjson::dom::array array;
  const auto value = find(names);
  if (!value || value->get(array) != simdjson::SUCCESS) return {count(names, fallback, least, most)};
  std::vector<std::int64_t> numbers;
  for (const simdjson::dom::element item : array) {
    std::int64_t number = 0;
    if (item.get(number) != simdjson::SUCCESS || number > most || (number < least && number != 0))
      fail(ErrorCode::kBadFile,
           fmt::format("{} has the item {}, expected whole numbers from {} to {}", first(names), simdjson::minify(item), least, most));
    numbers.push_back(number);
  }
  if (numbers.empty()) fail(ErrorCode::kBadFile, fmt::format("{} is an empty list", first(names)));
  return error ? std::vector{least} : numbers;
}

double FolderConfig::number(Names names, std::optional<double> fallback, double low, double high) {
  const auto value = find(names);
  if (!value && fallback) return *fallback;
  double number = 0.0;
  if (!value) {
    fail(ErrorCode::kBadFile, fmt::format("the key {} is missing", first(names)));
  } else if (value->get(number) != simdjson::SUCCESS || !(number >= low && number <= high)) {
    fail(ErrorCode::kBadFile, fmt::format("{} is {}, expected a number from {} to {}", first(names), simdjson::minify(*value), low, high));
  } else {
    return number;
  }
  return fallback.value_or(low);
}

bool FolderConfig::flag(Names names, bool fallback) {
  const auto value = find(names);
  bool flag = fallback;
  if (value && value->get(flag) != simdjson::SUCCESS)
    fail(ErrorCode::kBadFile, fmt::format("{} is {}, expected true or false", first(names), simdjson::minify(*value)));
  return flag;
}

std::string FolderConfig::text(Names names, std::string_view fallback) {
  const auto value = find(names);
  std::string_view text = fallback;
  if (value && value->get(text) != simdjson::SUCCESS)
    fail(ErrorCode::kBadFile, fmt::format("{} is {}, expected a text", first(names), simdjson::minify(*value)));
  return std::string(text);
}

std::vector<double> FolderConfig::numbers(std::string_view name, std::size_t expected) {
  const auto value = find({name});
  if (!value) return {};
  std::vector<double> numbers;
  simdjson::dom::array array;
  bool sound = value->get(array) == simdjson::SUCCESS && array.size() == expected;
  if (sound)
    for (const simdjson::dom::element item : array) sound = item.get(numbers.emplace_back()) == simdjson::SUCCESS && sound;
  if (!sound) fail(ErrorCode::kBadFile, fmt::format("{}{} is not a list of {} numbers", prefix_, name, expected));
  numbers.resize(expected);
  return numbers;
}

std::vector<std::string> FolderConfig::texts(std::string_view name) {
  const auto value = find({name});
  if (!value) return {};
  std::vector<std::string> texts;
  simdjson::dom::array array;
  bool sound = value->get(array) == simdjson::SUCCESS;
  if (sound)
    for (const simdjson::dom::element item : array) {
      std::string_view text;
      sound = item.get(text) == simdjson::SUCCESS && sound;
      texts.emplace_back(text);
    }
  if (!sound) fail(ErrorCode::kBadFile, fmt::format("{}{} is not a list of texts", prefix_, name));
  return texts;
}

std::optional<FolderConfig> FolderConfig::part(std::string_view name) const {
  simdjson::dom::object object;
  const auto value = find({name});
  if (!value || value->get(object) != simdjson::SUCCESS) return std::nullopt;
  return FolderConfig(*value, *this, name);
}

FolderConfig FolderConfig::outer() const {
  FolderConfig own(outer_root_, *this, "");
  own.prefix_.clear();
  own.model_type_ = own.outer_type_ = outer_type_;
  return own;
}

std::optional<FolderConfig> FolderConfig::outer_part(std::string_view name) const {
  simdjson::dom::element value;
  simdjson::dom::object object;
  if (outer_root_[name].get(value) != simdjson::SUCCESS || value.get(object) != simdjson::SUCCESS) return part(name);
  FolderConfig own(value, *this, name);
  own.prefix_ = fmt::format("{}.", name);
  return own;
}

}  // namespace braid::model
