// GET /v1/registry: the models of this machine, loaded or not.
#pragma once

#include "net/http/connection.h"
#include "net/http/request.h"
#include "net/log/request_record.h"
#include "net/service/service.h"

#include <boost/asio/awaitable.hpp>
#include <memory>

namespace braid::net::admin {

// {"object":"list","data":[…]}; of the query name (a part of it), architecture, quantisation, capability, source and format leave out others.
boost::asio::awaitable<bool> list_registry(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection,
                                           http::Request request, RequestRecord& record);

}  // namespace braid::net::admin
