// One HTTP request, parsed and complete.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace braid::net::http {

class RequestReader;

enum class Method { kGet, kHead, kPost, kDelete, kOptions, kOther };

struct Request {
  Method method = Method::kGet;
  std::string target = "/";           // as sent: percent-encoded, with its query
  int version = 11;                   // 10 or 11
  bool keep_alive = true;             // whether the client allows another request on this connection
  std::string request_id;             // X-Request-Id, or empty
  std::vector<std::string> api_keys;  // that came with it, as Authorization: Bearer and as x-api-key; never to be logged
  std::string host;                   // as sent
  std::string origin;                 // of the web page that sends it, or empty
  bool is_preflight = false;          // has Access-Control-Request-Method
  std::string asked_headers;          // Access-Control-Request-Headers
  bool asks_private_network = false;  // has Access-Control-Request-Private-Network: true
  std::string content_coding;         // Content-Encoding of the body, or empty
  std::string capability;             // X-Braid-Token, or empty
  bool prefers_html = false;          // its Accept names text/html, as that of a browser that opens a page
  bool speaks_anthropic = false;      // has anthropic-version, which clients of that API send
  std::string forwarded_for;          // X-Forwarded-For, several joined by commas
  std::string traceparent;            // as sent, or empty
  std::string body;
  bool is_whole = true;                                             // false: its header is enough for its answer, and its body was not read
  std::vector<std::pair<std::string, std::string>> answer_headers;  // of any answer to it
  std::shared_ptr<RequestReader> rest = {};  // what goes on reading a body that comes in pieces; null: `body` is all of it
};

}  // namespace braid::net::http
