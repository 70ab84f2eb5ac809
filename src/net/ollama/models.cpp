#include "net/ollama/models.h"

#include "braid/model_host.h"
#include "net/generation/parser/answer_syntax.h"
#include "net/json/write.h"
#include "net/ollama/model_entry.h"
#include "net/ollama/options.h"
#include "net/ollama/timestamp.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <iterator>
#include <map>
#include <openssl/sha.h>
#include <string>
#include <string_view>
#include <utility>

namespace braid::net::ollama {
namespace {

constexpr std::string_view kApiVersion = "0.12.0";
constexpr std::string_view kNever = "2318-01-01T00:00:00Z";  // about when Ollama says so for a model that stays

// What each model's `append` has said, in {"models":[…]}.
template <class Append>
http::Response list_of(const ServiceStatus& status, Append append) {
  http::Response response;
  response.body = R"({"models":[)";
  std::string_view separator = "";
  for (const ServedModel* model : status.models.all()) {
    response.body += std::exchange(separator, ",");
    append_entry(response.body, *model);
    append(response.body, *model);
    response.body += '}';
  }
  response.body += "]}";
  return response;
}

// The parameters that a request which is silent has here, as a Modelfile names them.
std::string parameters_of(const ServedModel& model) {
  Wish wish;
  set_defaults(wish, model.defaults);
  const SamplingParams& sampling = wish.sampling;
  return fmt::format("temperature {}\ntop_k {}\ntop_p {}\nmin_p {}\nrepeat_penalty {}\nrepeat_last_n {}", sampling.temperature,
                     sampling.top_k, sampling.top_p, sampling.min_p, sampling.repetition_penalty, sampling.penalty_last_n);
}

void append_capabilities(std::string& out, const ServedModel& model) {
  out += R"("capabilities":["completion","tools","embedding")";
  AnswerSyntax syntax;
  find_reasoning(syntax, *model.codec, model.codec->template_source(ChatPrompt()), {});
  if (!syntax.reasoning.close.empty()) out += R"(,"thinking")";
  if (model.codec->infill_tokens()) out += R"(,"insert")";
  if (model.images != nullptr) out += R"(,"vision")";
  out += ']';
}

}  // namespace

http::Response running(const ServiceStatus& status) {
  std::map<std::string, std::int64_t, std::less<>> ends;  // of those that are to be unloaded
  if (status.host != nullptr)
    for (const KnownModel& model : status.host->known())
      if (model.expires) ends[model.id] = std::chrono::system_clock::to_time_t(*model.expires);
  return list_of(status, [&ends](std::string& out, const ServedModel& model) {
    const auto end = ends.find(model.id);
    fmt::format_to(std::back_inserter(out), R"(,"expires_at":"{}","size_vram":0,"context_length":{})",
                   end != ends.end() ? timestamp(end->second) : std::string(kNever), model.context_length);
  });
}

http::Response root() {
  http::Response response;
  response.content_type = "text/plain; charset=utf-8";
  response.body = "Ollama is running";
  return response;
}

http::Response version() {
  http::Response response;
  response.body = fmt::format(R"({{"version":"{}"}})", kApiVersion);
  return response;
}

Result<TextAnswer> show(Value&, const ServedModel& model) {
  const std::string source(model.codec->template_source(ChatPrompt()));
  std::string out = R"({"modelfile":)" + json::quoted("FROM " + model.id + "\n") + R"(,"parameters":)" +
                    json::quoted(parameters_of(model)) + R"(,"template":)";
  json::append_lossy_string(out, source);
  fmt::format_to(std::back_inserter(out), R"(,"modified_at":"{}",)", timestamp(model.created));
  append_details(out, facts_of(model), "");
  out += R"(,"model_info":{"general.architecture":)" + json::quoted(model.architecture);
  fmt::format_to(std::back_inserter(out), R"(,"general.parameter_count":{},{}:{}}},)", model.parameters,
                 json::quoted(model.architecture + ".context_length"), model.context_length);
  append_capabilities(out, model);
  return TextAnswer{out + "}"};
}

}  // namespace braid::net::ollama
