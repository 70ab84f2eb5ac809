#include "net/http/error_response.h"

#include "net/json/write.h"

#include <algorithm>
#include <array>
#include <chrono>

namespace braid::net::http {
namespace {

struct Row {
  ErrorCode error;
  int status;
  std::string_view type;
  std::string_view code;  // empty: null
};

constexpr std::string_view kInvalid = "invalid_request_error";

constexpr std::array<Row, 19> kTable = {{
    {ErrorCode::kInvalidArgument, 400, kInvalid, ""},
    {ErrorCode::kContextLength, 400, kInvalid, "context_length_exceeded"},
    {ErrorCode::kUnknownResponse, 400, kInvalid, "previous_response_not_found"},
    {ErrorCode::kUnauthorized, 401, kInvalid, "invalid_api_key"},
    {ErrorCode::kForbidden, 403, kInvalid, "forbidden"},
    {ErrorCode::kNotFound, 404, kInvalid, "not_found"},
    {ErrorCode::kMethodNotAllowed, 405, kInvalid, "method_not_allowed"},
    {ErrorCode::kTooLarge, 413, kInvalid, "request_too_large"},
    {ErrorCode::kUnsupportedMedia, 415, kInvalid, "unsupported_media_type"},
    {ErrorCode::kRateLimited, 429, "rate_limit_error", "rate_limit_exceeded"},
    {ErrorCode::kOverloaded, 429, "rate_limit_error", "overloaded"},
    {ErrorCode::kModelNotLoaded, 503, "service_unavailable_error", "model_not_loaded"},
    {ErrorCode::kDraining, 503, "service_unavailable_error", "shutting_down"},
    {ErrorCode::kTimeout, 504, "timeout_error", "timeout"},
    {ErrorCode::kCancelled, 499, kInvalid, "cancelled"},  // not one that clients try again by themselves
    {ErrorCode::kBadFile, 500, "server_error", "internal_error"},
    {ErrorCode::kUnsupported, 500, "server_error", "internal_error"},
    {ErrorCode::kIo, 500, "server_error", "internal_error"},
    {ErrorCode::kInternal, 500, "server_error", "internal_error"},
}};

const Row& row_of(ErrorCode code) {
  for (const Row& row : kTable)
    if (row.error == code) return row;
  return kTable.back();
}

// A 404 about the `model` field is OpenAI's best known code.
std::string_view code_of(const Error& error) {
  return error.code == ErrorCode::kNotFound && error.param == "model" ? "model_not_found" : row_of(error.code).code;
}

void append_string_or_null(std::string& out, std::string_view text) {
  if (text.empty()) {
    out += "null";
  } else {
    json::append_string(out, text);
  }
}

void append_members(std::string& out, std::string_view message, std::string_view type, std::string_view param, std::string_view code) {
  out += R"({"error":{"message":)";
  json::append_lossy_string(out, message);
  out += R"(,"type":)";
  json::append_string(out, type);
  out += R"(,"param":)";
  append_string_or_null(out, param);
  out += R"(,"code":)";
  append_string_or_null(out, code);
  out += "}}";
}

}  // namespace

int status_of(ErrorCode code) { return row_of(code).status; }

void append_envelope(std::string& out, const Error& error) {
  append_members(out, error.message, row_of(error.code).type, error.param, code_of(error));
}

Response error_response(const Error& error) {
  Response response;
  response.status = status_of(error.code);
  response.refusal = error.code;
  append_envelope(response.body, error);
  if (response.status == 401) response.headers.emplace_back("WWW-Authenticate", R"(Bearer realm="braid")");
  const auto seconds = std::max<std::chrono::seconds>(error.retry_after, std::chrono::seconds(1)).count();
  if (response.status == 429 || response.status == 503) response.headers.emplace_back("Retry-After", std::to_string(seconds));
  if (error.queue_position > 0) response.headers.emplace_back("X-Queue-Position", std::to_string(error.queue_position));
  return response;
}

Response protocol_error(int status, std::string_view message) {
  Response response;
  response.status = status;
  append_members(response.body, message, kInvalid, "", "");
  return response;
}

}  // namespace braid::net::http
