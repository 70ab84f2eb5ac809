// One row of the table of endpoints: method, path, who may call it, and what answers.
#pragma once

#include "net/endpoints/dialects.h"
#include "net/generation/dialect.h"
#include "net/http/connection.h"
#include "net/http/request.h"
#include "net/http/response.h"
#include "net/service/service.h"
#include "net/text/text_job.h"

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace braid::net {

class RequestRecord;

enum class Caller {
  kAnybody,
  kKey,            // who has a key, where the server has some
  kMetricsReader,  // the same, or anybody where the options say so
  kAdministrator,  // access/administrator.h
};

// What an answer that is made at once may look at.
struct Question {
  Service& service;
  Dialects& dialects;
  std::string_view argument;  // the decoded rest of the path
  std::string_view query;     // behind the "?", as sent
  std::string& body;
  bool speaks_anthropic;    // the client
  bool prefers_html;        // the same
  std::string_view client;  // the name of its account; empty: anonymous, or one without a key at an endpoint that needs none
};

using DialectOf = std::unique_ptr<const Dialect> Dialects::*;  // generates
using Answer = http::Response (*)(const Question& question);   // on the loop, at once
// On the loop, in its time. Owns its arguments.
using Work = boost::asio::awaitable<http::Response> (*)(std::shared_ptr<Service>, std::shared_ptr<http::Connection>, std::string body);

// As Work, of whose request it is, too.
using AskedWork = boost::asio::awaitable<http::Response> (*)(std::shared_ptr<Service>, std::shared_ptr<http::Connection>, Asker asker,
                                                             std::string body);

// The same for an answer in several pieces, which it writes itself. The record outlives it. True: the connection may take another request.
using Errand = boost::asio::awaitable<bool> (*)(std::shared_ptr<Service>, std::shared_ptr<http::Connection>, http::Request request,
                                                RequestRecord& record);

// The same for a body of any length: it reads it itself, from Request::rest, and the connection ends with it.
struct Upload {
  Errand run;
};

// As a TextJob, of what the server remembers of its client, too. Any thread; it may be long with a short body.
struct RecalledJob {
  Result<TextAnswer> (*run)(Value& body, const ServedModel& model, Dialects& dialects, std::string_view client);
};

// What a policy does: of a network by `act`; nullopt: the body names a language model, whose dialect answers. All outlives it.
struct PolicyWork {
  boost::asio::awaitable<std::optional<http::Response>> (*act)(std::shared_ptr<Service>, std::shared_ptr<http::Connection>,
                                                               rl::Sessions& sessions, Asker asker, std::string& body);
  DialectOf dialect;
};

// As Work, of what the server remembers, too, which outlives it.
using RememberingWork = boost::asio::awaitable<http::Response> (*)(std::shared_ptr<Service>, std::shared_ptr<http::Connection>, Dialects&,
                                                                   std::string body);

struct Endpoint {
  http::Method method;    // GET implies HEAD
  std::string_view path;  // without /v1, unless only the path with it means this
  bool argument;          // one more path segment (or several: model ids may hold slashes) follows
  Caller caller;
  std::variant<DialectOf, TextJob, RecalledJob, PolicyWork, RememberingWork, AskedWork, Work, Errand, Upload, Answer> handler;
};

// Every endpoint of the server.
std::span<const Endpoint> endpoints();

inline bool generates(const Endpoint& endpoint) {
  return std::holds_alternative<DialectOf>(endpoint.handler) || std::holds_alternative<PolicyWork>(endpoint.handler);
}

// Whether it takes work, and so counts among what its client may do.
inline bool takes_work(const Endpoint& endpoint) { return !std::holds_alternative<Answer>(endpoint.handler); }

// Whether it answers also without an API key, where the server has some.
bool is_open(const Endpoint& endpoint, const ServerOptions& options);

// How it says that it does not answer; where it has no dialect of its own, in the client's.
const Voice& voice_of(const Endpoint& endpoint, const Dialects& dialects, bool speaks_anthropic);

}  // namespace braid::net
