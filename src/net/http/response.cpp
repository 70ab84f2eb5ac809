#include "net/http/response.h"

#include <ctime>
#include <fmt/format.h>
#include <iterator>

namespace braid::net::http {
namespace {

// RFC 9110, IMF-fixdate.
void append_date(std::string& out) {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[64];
  const std::size_t length = std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &utc);
  out.append("Date: ").append(text, length).append("\r\n");
}

}  // namespace

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 415:
      return "Unsupported Media Type";
    case 413:
      return "Content Too Large";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 499:
      return "Client Closed Request";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Unknown";
  }
}

void append_head(std::string& out, const Response& response, Framing framing, const Request& request, bool keep_alive) {
  const auto to_end = std::back_inserter(out);
  fmt::format_to(to_end, "HTTP/1.1 {} {}\r\n", response.status, reason_phrase(response.status));
  append_date(out);
  if (!response.content_type.empty()) fmt::format_to(to_end, "Content-Type: {}\r\n", response.content_type);
  for (const auto& [name, value] : response.headers) fmt::format_to(to_end, "{}: {}\r\n", name, value);
  for (const auto& [name, value] : request.answer_headers) fmt::format_to(to_end, "{}: {}\r\n", name, value);
  if (!request.request_id.empty()) fmt::format_to(to_end, "X-Request-Id: {}\r\n", request.request_id);
  if (framing == Framing::kChunked) out += "Transfer-Encoding: chunked\r\n";
  if (framing == Framing::kLength && response.status != 204) fmt::format_to(to_end, "Content-Length: {}\r\n", response.body.size());
  if (!keep_alive) {
    out += "Connection: close\r\n";
  } else if (request.version == 10) {
    out += "Connection: keep-alive\r\n";
  }
  out += "\r\n";
}

}  // namespace braid::net::http
