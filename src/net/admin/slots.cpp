#include "net/admin/slots.h"

#include "net/admin/sequences.h"
#include "net/generation/prompts.h"
#include "net/generation/settings.h"
#include "net/http/error_response.h"
#include "net/http/query.h"
#include "net/json/write.h"
#include "net/wish/defaults.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <fmt/format.h>
#include <iterator>
#include <optional>
#include <string>

namespace braid::net::admin {
namespace {

constexpr std::size_t kMaxSlots = 16384;

// llama-server numbers its tasks: a number that an answer's id stands for.
std::uint32_t task_of(std::string_view answer_id) {
  constexpr std::size_t kDigits = 7;
  const std::string_view digits = answer_id.substr(answer_id.size() - std::min(answer_id.size(), kDigits));
  std::uint32_t task = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), task, 16);
  return task;
}

void append_place(std::string& out, std::size_t index, const ServedModel& model, bool is_processing) {
  fmt::format_to(std::back_inserter(out), R"({}{{"id":{},"n_ctx":{},"speculative":false,"is_processing":{})", index > 0 ? "," : "", index,
                 model.context_length, is_processing);
}

void append_slot(std::string& out, std::size_t index, const ServedModel& model, const SequenceSnapshot& sequence, const Wish& wish) {
  append_place(out, index, model, sequence.phase != "waiting");
  const std::int32_t left = sequence.max_tokens - sequence.generated_tokens;
  fmt::format_to(std::back_inserter(out), R"(,"id_task":{},"next_token":{{"has_next_token":{},"n_remain":{},"n_decoded":{}}},"params":)",
                 task_of(answer_id(sequence.id)), left > 0, left, sequence.generated_tokens);
  append_settings(out, wish);
  out += R"(,"request":)";
  json::append_lossy_string(out, sequence.id);
  out += R"(,"phase":)";
  json::append_string(out, sequence.phase);
  fmt::format_to(std::back_inserter(out), R"(,"priority":{},"prompt_tokens":{},"cached_tokens":{},"generated_tokens":{},"max_tokens":{}}})",
                 sequence.priority, sequence.prompt_tokens, sequence.cached_tokens, sequence.generated_tokens, sequence.max_tokens);
}

void append_token(std::string& out, const char* name, const TextCodec& codec, std::optional<TokenId> token) {
  out.append(",\"").append(name).append("\":");
  json::append_lossy_string(out, token ? codec.token_bytes(*token) : std::string());
}

void append_defaults(std::string& out, const ServedModel& model) {
  Wish wish;
  wish::set_defaults(wish, model.defaults);
  fmt::format_to(std::back_inserter(out), R"({{"id":0,"id_task":-1,"n_ctx":{},"speculative":false,"is_processing":false,"params":)",
                 model.context_length);
  append_settings(out, wish);
  out += R"(,"prompt":"","next_token":{"has_next_token":true,"n_remain":-1,"n_decoded":0}})";
}

}  // namespace

http::Response slots(const Service& service, std::string_view query, std::string_view client) {
  http::Response response;
  response.body = "[";
  std::size_t index = 0;
  std::size_t free = 0;
  for (const ServedModel* model : service.status.models.all()) {
    const std::vector<SequenceSnapshot> sequences = model->engine->sequences(kMaxSlots);
    for (const SequenceSnapshot& sequence : sequences)
      if (const RunningAnswer* answer = find_answer(service, answer_id(sequence.id), client))
        append_slot(response.body, index++, *model, sequence, *answer->wish);
    const auto run = std::ranges::count_if(sequences, [](const SequenceSnapshot& one) { return one.phase != "waiting"; });
    const std::size_t places = model->engine->stats().most_running;
    for (std::size_t used = static_cast<std::size_t>(run); used < places; ++used, ++free) {
      append_place(response.body, index++, *model, false);
      response.body += '}';
    }
  }
  response.body += ']';
  if (free == 0 && http::query_value(query, "fail_on_no_slot") == "1")
    return http::error_response({ErrorCode::kModelNotLoaded, "no place is free", ""});
  return response;
}

http::Response props(const Service& service, std::string_view query) {
  const Result<const ServedModel*> served = served_model(service.status, http::query_value(query, "model").value_or(std::string()));
  if (!served) return http::error_response(served.error());
  const ServedModel& model = **served;
  const TextEnds ends = model.codec->text_ends();
  const ChatPrompt plain;
  http::Response response;
  std::string& out = response.body;
  out = R"({"default_generation_settings":)";
  append_defaults(out, model);
  fmt::format_to(std::back_inserter(out), R"(,"total_slots":{},"model_alias":)", model.engine->stats().most_running);
  json::append_lossy_string(out, model.id);
  out += R"(,"model_path":)";  // its name: where it lies is nobody's business
  json::append_lossy_string(out, model.id);
  out += R"(,"chat_template":)";
  json::append_lossy_string(out, model.codec->template_source(plain));
  // Of what conversations here may have, whatever the template can do by itself.
  out += R"(,"chat_template_caps":{"supports_system_role":true,"supports_tools":true,"supports_tool_calls":true,)"
         R"("supports_parallel_tool_calls":true},"modalities":{"vision":)";
  out.append(model.images != nullptr ? "true" : "false").append(R"(,"audio":false})");
  append_token(out, "bos_token", *model.codec, ends.bos);
  append_token(out, "eos_token", *model.codec, ends.eos);
  out += R"(,"build_info":)";
  json::append_lossy_string(out, "braid " + service.options.version);
  out += R"(,"is_sleeping":false,"system_fingerprint":)";
  json::append_lossy_string(out, model.fingerprint);
  out += '}';
  return response;
}

}  // namespace braid::net::admin
