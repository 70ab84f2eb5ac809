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

class RequestRecord;

namespace responses {
class Shelf;
}

// What a dialect brings. parse() may run on any thread.
struct Dialect {
  std::string_view id_prefix;
  Result<GenerationCall> (*parse)(std::string& body, const ServedModel& model, const responses::Shelf& shelf);
  std::unique_ptr<AnswerFormat> (*make_format)(const std::string& id, const ServedModel& model, const GenerationCall& call);
  http::Response (*refuse)(const Error& error);  // instead of an answer
};

// True when the connection can take another request. Cancels the generation as soon as the client is gone, in every phase. `visit` and
// `record` outlive it; the record's status is what the client was told, or 499 when it went away first.
boost::asio::awaitable<bool> generate(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection,
                                      http::Request request, Dialect dialect, access::Visit& visit, RequestRecord& record);

}  // namespace braid::net
