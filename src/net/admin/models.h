// Models are loaded, unloaded, put to sleep and woken: for administrators.
#pragma once

#include "net/http/connection.h"
#include "net/http/request.h"
#include "net/http/response.h"
#include "net/service/service.h"

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <string>

namespace braid::net {

class RequestRecord;

namespace admin {

// POST /v1/models/load, /unload: {"model": NAME}. With "stream" its progress comes as server-sent events, or with "stream": "ndjson" a line
// each. The last document, or the only one, says what it is now, or why it could not be.
boost::asio::awaitable<bool> load_model(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection,
                                        http::Request request, RequestRecord& record);
boost::asio::awaitable<bool> unload_model(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection,
                                          http::Request request, RequestRecord& record);

// POST /sleep, /wake_up: of all models, or of ?model=NAME. ?mode=abort ends running answers, ?mode=wait, as usual, waits for them; ?level= is
// taken without effect: weights are always released, and what the disk tier has stays.
boost::asio::awaitable<bool> sleep(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection, http::Request request,
                                   RequestRecord& record);
boost::asio::awaitable<bool> wake(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection, http::Request request,
                                  RequestRecord& record);

// GET /is_sleeping: {"is_sleeping": whether any does, or the one that ?model= names}.
http::Response is_sleeping(const ServiceStatus& status, std::string_view query);

}  // namespace admin
}  // namespace braid::net
