#include <fmt/format.h>
#include <net/json/fields.h>
#include <net/openai/parameters.h>

#include <array>

namespace braid::net::openai {
namespace {

Error refuse(const std::string& path, std::string_view accepted) {
  return invalid_argument(fmt::format("'{}' is not supported by this server{}", path, accepted), path);
}

bool is_empty(const Value& value) {
  if (const auto* list = value.get_if<ValueList>()) return list->empty();
  if (const auto* dict = value.get_if<ValueDict>()) return dict->empty();
  if (const auto* text = value.get_if<std::string>()) return text->empty();
  return false;
}

bool is_number(const Value& value, double number) {
  if (const auto* integer = value.get_if<std::int64_t>()) return static_cast<double>(*integer) == number;
  if (const auto* real = value.get_if<double>()) return *real == number;
  return false;
}

Result<void> only_empty(Draft&, Value& value, const std::string& path) {
  if (is_empty(value)) return {};
  return refuse(path, "");
}

Result<void> only_false(Draft&, Value& value, const std::string& path) {
  if (value == Value(false)) return {};
  if (value.get_if<bool>() == nullptr) return json::wrong_type(path, "a boolean", value);
  return refuse(path, " unless it is false");
}

template <int kNeutral>
Result<void> only_number(Draft&, Value& value, const std::string& path) {
  if (is_number(value, kNeutral)) return {};
  if (value.get_if<std::int64_t>() == nullptr && value.get_if<double>() == nullptr)
    return json::wrong_type(path, "a number", value);
  return refuse(path, fmt::format(" with another value than {}", kNeutral));
}

// Without tools, these three say nothing.
Result<void> only_no_tool(Draft&, Value& value, const std::string& path) {
  if (value == Value("none") || value == Value("auto")) return {};
  return refuse(path, " with another value than 'none' or 'auto'");
}

Result<void> only_plain_text(Draft&, Value& value, const std::string& path) {
  if (value.get_if<ValueDict>() == nullptr) return json::wrong_type(path, "an object", value);
  const Value* type = value.find("type");
  if (type != nullptr && *type == Value("text")) return {};
  return refuse(path, R"( with another value than {"type":"text"})");
}

Result<void> only_text_modality(Draft&, Value& value, const std::string& path) {
  if (value == Value(ValueList{Value("text")})) return {};
  return refuse(path, R"( with another value than ["text"])");
}

Result<void> only_medium(Draft&, Value& value, const std::string& path) {
  if (value == Value("medium")) return {};
  return refuse(path, " with another value than 'medium'");
}

constexpr std::array kRefused = {
    Parameter{"n", only_number<1>},
    Parameter{"best_of", only_number<1>},
    Parameter{"presence_penalty", only_number<0>},
    Parameter{"frequency_penalty", only_number<0>},
    Parameter{"logit_bias", only_empty},
    Parameter{"echo", only_false},
    Parameter{"suffix", only_empty},
    Parameter{"tools", only_empty},
    Parameter{"tool_choice", only_no_tool},
    Parameter{"functions", only_empty},
    Parameter{"function_call", only_no_tool},
    Parameter{"response_format", only_plain_text},
    Parameter{"modalities", only_text_modality},
    Parameter{"audio", only_empty},
    Parameter{"web_search_options", only_empty},
    Parameter{"reasoning_effort", only_medium},
    Parameter{"verbosity", only_medium},
    // Names of llama-server and vLLM.
    Parameter{"repetition_penalty", only_number<1>},
    Parameter{"repeat_penalty", only_number<1>},
    Parameter{"typical_p", only_number<1>},
    Parameter{"top_n_sigma", only_number<-1>},
    Parameter{"xtc_probability", only_number<0>},
    Parameter{"dry_multiplier", only_number<0>},
    Parameter{"mirostat", only_number<0>},
    Parameter{"include_stop_str_in_output", only_false},
    Parameter{"continue_final_message", only_false},
    Parameter{"use_beam_search", only_false},
    Parameter{"prompt_logprobs", only_empty},
    Parameter{"chat_template", only_empty},
    Parameter{"grammar", only_empty},
    Parameter{"json_schema", only_empty},
    Parameter{"guided_json", only_empty},
    Parameter{"guided_regex", only_empty},
    Parameter{"guided_choice", only_empty},
    Parameter{"guided_grammar", only_empty},
    Parameter{"structured_outputs", only_empty},
};

}  // namespace

std::span<const Parameter> refused_parameters() { return kRefused; }

}  // namespace braid::net::openai
