// What takes its time with the models of this machine: /api/create, /api/pull, /api/push.
#pragma once

#include "net/http/connection.h"
#include "net/http/request.h"
#include "net/log/request_record.h"
#include "net/service/service.h"

#include <boost/asio/awaitable.hpp>
#include <memory>

namespace braid::net::ollama {

// A line for each step, the last one {"status":"success"} or {"error":…}; with "stream": false one document, and a status of its own for an
// error. It ends when the client goes; a pull goes on where it was when it is asked for again.
boost::asio::awaitable<bool> create(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection, http::Request request,
                                    RequestRecord& record);
boost::asio::awaitable<bool> pull(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection, http::Request request,
                                  RequestRecord& record);
boost::asio::awaitable<bool> push(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection, http::Request request,
                                  RequestRecord& record);

}  // namespace braid::net::ollama
