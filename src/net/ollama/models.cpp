#include "net/ollama/models.h"

#include "braid/model_host.h"
#include "net/generation/parser/answer_syntax.h"
#include "net/json/write.h"
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

// 134.5M, 1.2B.
std::string parameter_size(std::int64_t parameters) {
  constexpr std::array<std::pair<double, char>, 3> kUnits = {{{1e9, 'B'}, {1e6, 'M'}, {1e3, 'K'}}};
  const auto count = static_cast<double>(parameters);
  for (const auto& [unit, letter] : kUnits)
    if (count >= unit) return fmt::format("{:.1f}{}", count / unit, letter);
  return fmt::to_string(parameters);
}

void append_details(std::string& out, const ServedModel& model) {
  const std::string family = json::quoted(model.architecture);
  fmt::format_to(std::back_inserter(out),
                 R"("details":{{"parent_model":"","format":"gguf","family":{0},"families":[{0}],"parameter_size":"{1}",)"
                 R"("quantization_level":{2}}})",
                 family, parameter_size(model.parameters), json::quoted(model.weight_type.empty() ? "unknown" : model.weight_type));
}

// Of all that its answers depend on.
std::string digest_of(const ServedModel& model) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(model.fingerprint.data()), model.fingerprint.size(), digest.data());
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

// The beginning of a model's object in a list.
void append_entry(std::string& out, const ServedModel& model) {
  const std::string name = json::quoted(model.id);
  fmt::format_to(std::back_inserter(out), R"({{"name":{0},"model":{0},"size":{1},"digest":"{2}",)", name, model.bytes, digest_of(model));
  append_details(out, model);
}

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
  out += ']';
}

}  // namespace

http::Response tags(const ServiceStatus& status) {
  return list_of(status, [](std::string& out, const ServedModel& model) { out += R"(,"modified_at":")" + timestamp(model.created) + '"'; });
}

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
  append_details(out, model);
  out += R"(,"model_info":{"general.architecture":)" + json::quoted(model.architecture);
  fmt::format_to(std::back_inserter(out), R"(,"general.parameter_count":{},{}:{}}},)", model.parameters,
                 json::quoted(model.architecture + ".context_length"), model.context_length);
  append_capabilities(out, model);
  return TextAnswer{out + "}"};
}

}  // namespace braid::net::ollama
