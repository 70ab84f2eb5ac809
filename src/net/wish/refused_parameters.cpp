#include "net/json/fields.h"
#include "net/wish/parameters.h"

#include <array>
#include <fmt/format.h>
#include <limits>

namespace braid::net::wish {
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

Result<void> only_empty(BodyFields&, Value& value, const std::string& path) {
  if (is_empty(value)) return {};
  return refuse(path, "");
}

Result<void> only_false(BodyFields&, Value& value, const std::string& path) {
  if (value == Value(false)) return {};
  if (value.get_if<bool>() == nullptr) return json::wrong_type(path, "a boolean", value);
  return refuse(path, " unless it is false");
}

// Without tools, these three say nothing.
Result<void> only_no_tool(BodyFields&, Value& value, const std::string& path) {
  if (value == Value("none") || value == Value("auto")) return {};
  return refuse(path, " with another value than 'none' or 'auto'");
}

Result<void> only_true(BodyFields&, Value& value, const std::string& path) {
  if (value == Value(true)) return {};
  if (value.get_if<bool>() == nullptr) return json::wrong_type(path, "a boolean", value);
  return refuse(path, " unless it is true");
}

// 0 switches it off, and so does what is below.
Result<void> only_zero(BodyFields&, Value& value, const std::string& path) {
  const Result<float> number = json::read_number(value, path, std::numeric_limits<float>::lowest(), std::numeric_limits<float>::max());
  if (!number) return number.error();
  return *number <= 0.0F ? Result<void>() : refuse(path, " unless it is 0");
}

Result<void> only_one(BodyFields&, Value& value, const std::string& path) {
  const Result<float> number = json::read_number(value, path, std::numeric_limits<float>::lowest(), std::numeric_limits<float>::max());
  if (!number) return number.error();
  return *number == 1.0F ? Result<void>() : refuse(path, " unless it is 1");
}

Result<void> only_nothing(BodyFields&, Value&, const std::string& path) { return refuse(path, ""); }

Result<void> accept_number(BodyFields&, Value& value, const std::string& path) {
  const Result<float> number = json::read_number(value, path, std::numeric_limits<float>::lowest(), std::numeric_limits<float>::max());
  return number ? Result<void>() : number.error();
}

// Reasoning is told apart from the answer.
Result<void> only_apart(BodyFields&, Value& value, const std::string& path) {
  if (value == Value("auto") || value == Value("deepseek")) return {};
  return refuse(path, " with another value than 'auto' or 'deepseek'");
}

Result<void> only_text_modality(BodyFields&, Value& value, const std::string& path) {
  if (value == Value(ValueList{Value("text")})) return {};
  return refuse(path, R"( with another value than ["text"])");
}

constexpr std::array kRefused = {
    Parameter{"tools", only_empty},
    Parameter{"tool_choice", only_no_tool},
    Parameter{"functions", only_empty},
    Parameter{"function_call", only_no_tool},
    Parameter{"modalities", only_text_modality},
    Parameter{"audio", only_empty},
    Parameter{"web_search_options", only_empty},
    Parameter{"prompt_cache_retention", accept_string},
    // vLLM
    Parameter{"use_beam_search", only_false},
    Parameter{"length_penalty", only_one},
    Parameter{"early_stopping", only_false},
    Parameter{"chat_template", only_empty},
    Parameter{"logits_processors", only_empty},
    Parameter{"prompt_embeds", only_empty},
    Parameter{"mm_processor_kwargs", only_empty},
    Parameter{"kv_transfer_params", only_empty},
    Parameter{"vllm_xargs", only_empty},
    Parameter{"request_id", accept_string},
    Parameter{"guided_decoding_backend", accept_string},
    Parameter{"guided_whitespace_pattern", only_empty},
    Parameter{"repetition_detection", only_empty},
    // SGLang
    Parameter{"lora_path", only_empty},
    Parameter{"session_params", only_empty},
    Parameter{"custom_logit_processor", only_empty},
    Parameter{"custom_params", only_empty},
    Parameter{"return_hidden_states", only_false},
    Parameter{"separate_reasoning", only_true},
    Parameter{"stream_reasoning", only_true},
    Parameter{"rid", accept_string},
    Parameter{"extra_key", accept_string},
    // llama-server
    Parameter{"dynatemp_range", only_zero},
    Parameter{"dynatemp_exponent", accept_number},
    Parameter{"min_keep", only_zero},
    Parameter{"n_indent", only_zero},
    Parameter{"t_max_predict_ms", only_zero},
    Parameter{"t_max_prompt_ms", only_zero},
    Parameter{"adaptive_target", only_zero},
    Parameter{"adaptive_decay", accept_number},
    Parameter{"preserved_tokens", only_empty},
    Parameter{"thinking_forced_open", only_false},
    Parameter{"reasoning_in_content", only_false},
    Parameter{"post_sampling_probs", only_false},
    Parameter{"response_fields", only_empty},
    Parameter{"image_data", only_empty},
    Parameter{"lora", only_empty},
    Parameter{"grammar_triggers", only_empty},
    Parameter{"grammar_lazy", only_false},
    Parameter{"parse_tool_calls", only_true},
    Parameter{"reasoning_format", only_apart},
    Parameter{"id_slot", accept_number},
    Parameter{"n_keep", accept_number},
    Parameter{"n_discard", accept_number},
    Parameter{"n_cache_reuse", accept_number},
    Parameter{"speculative.n_min", accept_number},
    Parameter{"speculative.p_min", accept_number},
    Parameter{"backend_sampling", accept_bool},
    Parameter{"sse_ping_interval", accept_number},
};

constexpr std::array kUntold = {
    Parameter{"return_token_ids", only_false}, Parameter{"return_tokens", only_false}, Parameter{"prompt_logprobs", only_nothing},
    Parameter{"return_progress", only_false},  Parameter{"echo", only_false},
};

}  // namespace

std::span<const Parameter> refused_parameters() { return kRefused; }
std::span<const Parameter> untold_parameters() { return kUntold; }

}  // namespace braid::net::wish
