#include "net/ollama/models.h"

#include "net/json/write.h"
#include "net/ollama/timestamp.h"

#include <array>
#include <fmt/format.h>
#include <iterator>
#include <string_view>
#include <utility>

namespace braid::net::ollama {
namespace {

constexpr std::string_view kApiVersion = "0.12.0";

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
  fmt::format_to(std::back_inserter(out), R"("details":{{"family":{0},"families":[{0}],"parameter_size":"{1}"}})", family,
                 parameter_size(model.parameters));
}

}  // namespace

http::Response tags(const ServiceStatus& status) {
  http::Response response;
  std::string& out = response.body;
  out = R"({"models":[)";
  std::string_view separator = "";
  for (const ServedModel* model : status.models.all()) {
    const std::string name = json::quoted(model->id);
    fmt::format_to(std::back_inserter(out), R"({}{{"name":{},"model":{},"modified_at":"{}",)", std::exchange(separator, ","), name, name,
                   timestamp(model->created));
    append_details(out, *model);
    out += '}';
  }
  out += "]}";
  return response;
}

http::Response version() {
  http::Response response;
  response.body = fmt::format(R"({{"version":"{}"}})", kApiVersion);
  return response;
}

Result<std::string> show(Value&, const ServedModel& model) {
  std::string out = R"({"template":)";
  json::append_lossy_string(out, model.codec->template_source(ChatPrompt()));
  fmt::format_to(std::back_inserter(out), R"(,"modified_at":"{}",)", timestamp(model.created));
  append_details(out, model);
  out += R"(,"model_info":{"general.architecture":)";
  json::append_lossy_string(out, model.architecture);
  out += R"(,"general.parameter_count":)" + fmt::to_string(model.parameters) + ",";
  json::append_lossy_string(out, model.architecture + ".context_length");
  out += ":" + fmt::to_string(model.context_length) + R"(},"capabilities":["completion","tools")";
  if (model.codec->infill_tokens()) out += R"(,"insert")";
  out += "]}";
  return out;
}

}  // namespace braid::net::ollama
