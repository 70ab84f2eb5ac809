#include "net/anthropic/models.h"

#include "net/anthropic/message_format.h"
#include "net/http/query.h"
#include "net/json/write.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>
#include <fmt/format.h>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace braid::net::anthropic {
namespace {

constexpr std::size_t kDefaultLimit = 20;  // these two as at Anthropic
constexpr std::size_t kMaxLimit = 1000;

std::string rfc3339(std::time_t seconds) {
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

void append_model(std::string& out, const ServedModel& model) {
  out += R"({"type":"model","id":)";
  json::append_lossy_string(out, model.id);
  out += R"(,"display_name":)";
  json::append_lossy_string(out, model.id);
  fmt::format_to(std::back_inserter(out),
                 R"(,"created_at":"{}","max_input_tokens":{},"max_tokens":{},"capabilities":null,"deprecated_at":null,)"
                 R"("lifecycle":"active","line":null,"retires_at":null}})",
                 rfc3339(model.created), model.context_length, model.context_length);
}

Result<std::size_t> read_limit(std::string_view query) {
  const std::optional<std::string> text = http::query_value(query, "limit");
  if (!text) return kDefaultLimit;
  std::size_t limit = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), limit);
  if (error == std::errc() && end == text->data() + text->size() && limit >= 1 && limit <= kMaxLimit) return limit;
  return invalid_argument(fmt::format("'limit' must be a whole number from 1 to {}", kMaxLimit), "limit");
}

void append_id(std::string& out, std::string_view name, const ServedModel* model) {
  out.append(",\"").append(name).append("\":");
  model != nullptr ? json::append_lossy_string(out, model->id) : void(out += "null");
}

}  // namespace

http::Response list_models(const ServiceStatus& status, std::string_view query) {
  const Result<std::size_t> limit = read_limit(query);
  if (!limit) return error_response(limit.error());
  const auto all = status.models.all();
  std::vector<const ServedModel*> page(all.begin(), all.end());
  const auto named = [&page](const std::string& id) {
    return std::find_if(page.begin(), page.end(), [&id](const ServedModel* model) { return model->id == id; });
  };
  if (const auto after = http::query_value(query, "after_id")) {
    const auto found = named(*after);
    page.erase(page.begin(), found == page.end() ? page.end() : std::next(found));
  }
  bool more = page.size() > *limit;
  if (const auto before = http::query_value(query, "before_id")) {  // the last ones before it
    page.erase(named(*before), page.end());
    more = page.size() > *limit;
    page.erase(page.begin(), page.end() - static_cast<std::ptrdiff_t>(std::min(page.size(), *limit)));
  }
  page.resize(std::min(page.size(), *limit));
  http::Response response;
  response.body = R"({"data":[)";
  std::string_view separator = "";
  for (const ServedModel* model : page) {
    response.body += std::exchange(separator, ",");
    append_model(response.body, *model);
  }
  response.body.append(R"(],"has_more":)").append(more ? "true" : "false");
  append_id(response.body, "first_id", page.empty() ? nullptr : page.front());
  append_id(response.body, "last_id", page.empty() ? nullptr : page.back());
  response.body += '}';
  return response;
}

http::Response show_model(const ServiceStatus& status, std::string_view id) {
  const ServedModel* model = status.models.find(id);
  if (model == nullptr) return error_response({ErrorCode::kNotFound, fmt::format("the model '{}' does not exist", id), "model"});
  http::Response response;
  append_model(response.body, *model);
  return response;
}

}  // namespace braid::net::anthropic
