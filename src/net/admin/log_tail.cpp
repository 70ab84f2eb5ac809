#include "net/admin/log_tail.h"

#include "net/http/error_response.h"
#include "net/http/query.h"
#include "net/json/write.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <system_error>

namespace braid::net::admin {
namespace {

constexpr std::uint64_t kUsualLines = 200;

// A whole number of the query, `usual` where it has none.
Result<std::uint64_t> whole_number(std::string_view query, std::string_view name, std::uint64_t usual) {
  const std::optional<std::string> text = http::query_value(query, name);
  if (!text) return usual;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc{} || end != text->data() + text->size())
    return invalid_argument(fmt::format("{} must be a whole number", name), std::string(name));
  return number;
}

}  // namespace

http::Response log_tail(const std::shared_ptr<const LogTail>& tail, std::string_view query) {
  if (tail == nullptr) return http::error_response({ErrorCode::kNotFound, "this server keeps no lines of its log", ""});
  const Result<std::uint64_t> after = whole_number(query, "after", 0);
  if (!after) return http::error_response(after.error());
  const Result<std::uint64_t> limit = whole_number(query, "limit", kUsualLines);
  if (!limit) return http::error_response(limit.error());
  const LogTail::Excerpt excerpt = tail->after(*after, std::min<std::uint64_t>(*limit, LogTail::kMostLines));
  http::Response response;
  response.body = fmt::format(R"({{"object":"log","first":{},"lines":[)", excerpt.first);
  for (const std::string& line : excerpt.lines) {
    if (&line != &excerpt.lines.front()) response.body += ',';
    json::append_lossy_string(response.body, line);
  }
  response.body += "]}";
  return response;
}

}  // namespace braid::net::admin
