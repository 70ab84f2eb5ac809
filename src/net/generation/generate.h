// A generation from its body to the last byte of its answer: the one path of every dialect.
#pragma once

#include <braid/result.h>
#include <braid/served_model.h>
#include <net/generation/answer_format.h>
#include <net/generation/call.h>
#include <net/http/connection.h>
#include <net/http/request.h>
#include <net/service.h>

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <string>
#include <string_view>

namespace braid::net {

namespace responses {
class ResponseStore;
}

// What a dialect brings. parse() may run on any thread.
struct Dialect {
  std::string_view id_prefix;
  Result<GenerationCall> (*parse)(std::string& body, const ServedModel& model, responses::ResponseStore& stored);
  std::unique_ptr<AnswerFormat> (*make_format)(const std::string& id, const ServedModel& model, const GenerationCall& call);
  http::Response (*refuse)(const Error& error);  // instead of an answer
};

struct GenerationOutcome {
  int status = 0;           // what the client was told, or 499 when it went away first
  bool keep_alive = false;  // whether the connection can take another request
};

// Cancels the generation as soon as the client is gone, in every phase.
boost::asio::awaitable<GenerationOutcome> generate(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection,
                                                   http::Request request, Dialect dialect);

}  // namespace braid::net
