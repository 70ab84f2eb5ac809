#include "app/models/remote_call.h"

#include "net/access/loopback.h"
#include "net/json/parse.h"
#include "net/json/write_value.h"

#include <cstdlib>
#include <fmt/format.h>
#include <utility>

namespace braid::app {
namespace {

using registry::HttpAnswer;
using registry::HttpRequest;

constexpr std::size_t kMostAnswer = std::size_t{256} << 20;

// What a refusal says, in the form of any dialect.
Error error_of(const HttpAnswer& answer) {
  std::string body = answer.body;
  const Result<Value> document = net::json::parse(body);
  std::string sentence = document ? text_member(*document, "error") : "";
  if (sentence.empty() && document && document->find("error") != nullptr) sentence = text_member(*document->find("error"), "message");
  if (sentence.empty()) sentence = fmt::format("{} answers with status {}", registry::origin_of(answer.url), answer.status);
  const ErrorCode code = answer.status == 404   ? ErrorCode::kNotFound
                         : answer.status == 400 ? ErrorCode::kInvalidArgument
                         : answer.status == 401 ? ErrorCode::kUnauthorized
                         : answer.status == 403 ? ErrorCode::kForbidden
                                                : ErrorCode::kIo;
  return {code, sentence, ""};
}

// Takes the whole lines off the front of what has come.
bool take_lines(std::string& pending, const std::function<bool(const Value&)>& take) {
  for (std::size_t end = 0; (end = pending.find('\n')) != std::string::npos;) {
    std::string line = pending.substr(0, end);
    pending.erase(0, end + 1);
    const Result<Value> document = net::json::parse(line);
    if (document && !take(*document)) return false;
  }
  return true;
}

}  // namespace

std::string text_member(const Value& value, std::string_view name) {
  const Value* found = value.find(name);
  const auto* text = found != nullptr ? found->get_if<std::string>() : nullptr;
  return text != nullptr ? *text : std::string();
}

RemoteCall::RemoteCall(std::string url, const DataOptions& data) : url_(std::move(url)) {
  if (url_.find("://") == std::string::npos) url_ = "http://" + url_;
  while (url_.ends_with('/')) url_.pop_back();
  http_.ca_file = data.ca_file;
  http_.direct = net::access::is_loopback_origin(url_);
  http_.stall_timeout = std::chrono::seconds(0);  // a server of one's own may take its time
  if (const char* key = std::getenv("BRAID_API_KEY"); key != nullptr && *key != '\0')
    headers_.push_back(fmt::format("Authorization: Bearer {}", key));
}

HttpRequest RemoteCall::request(const std::string& method, const std::string& path, ValueDict body) const {
  HttpRequest made{.method = method, .url = url_ + path};
  net::json::append_value(made.body, std::move(body));
  made.headers = {"Content-Type: application/json"};
  return made;
}

Result<HttpAnswer> RemoteCall::send(HttpRequest request) const {
  request.headers.insert(request.headers.end(), headers_.begin(), headers_.end());
  Result<HttpAnswer> answer = registry::ask(http_, request, kMostAnswer);
  if (!answer && answer.error().code == ErrorCode::kIo)
    return Error{ErrorCode::kModelNotLoaded, fmt::format("the server cannot be reached: {}", answer.error().message), ""};
  if (answer && (answer->status < 200 || answer->status > 299)) return error_of(*answer);
  return answer;
}

Result<Value> RemoteCall::get(const std::string& path) const {
  Result<HttpAnswer> answer = send({.url = url_ + path});
  if (!answer) return answer.error();
  return net::json::parse(answer->body);
}

Result<Value> RemoteCall::post(const std::string& path, ValueDict body) const {
  Result<HttpAnswer> answer = send(request("POST", path, std::move(body)));
  if (!answer) return answer.error();
  if (answer->body.empty()) return Value();
  return net::json::parse(answer->body);
}

Result<void> RemoteCall::remove(const std::string& path, ValueDict body) const {
  const Result<HttpAnswer> answer = send(request("DELETE", path, std::move(body)));
  if (!answer) return answer.error();
  return {};
}

Result<bool> RemoteCall::has(const std::string& path) const {
  const Result<HttpAnswer> answer = registry::ask(http_, {.method = "HEAD", .url = url_ + path, .headers = headers_}, kMostAnswer);
  if (!answer) return answer.error();
  return answer->status == 200;
}

Result<void> RemoteCall::send_file(const std::string& path, const std::string& file,
                                   const std::function<bool(std::uint64_t)>& on_sent) const {
  HttpRequest made{.method = "POST", .url = url_ + path};
  made.headers = {"Content-Type: application/octet-stream"};
  made.upload_file = file;
  made.on_upload = on_sent;
  const Result<HttpAnswer> sent = send(std::move(made));
  if (!sent) return sent.error();
  return {};
}

Result<void> RemoteCall::lines(const std::string& path, ValueDict body, const std::function<bool(const Value&)>& take) const {
  std::string pending;
  HttpRequest made = request("POST", path, std::move(body));
  made.on_body = [&](std::string_view bytes) {
    pending += bytes;
    return take_lines(pending, take);
  };
  const Result<HttpAnswer> answer = send(std::move(made));
  if (!answer) return answer.error();
  return {};
}

}  // namespace braid::app
