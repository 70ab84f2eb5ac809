// The weights of what is served: what they are, newer ones in their place, and their digests. An administrator's, but for what is told.
#pragma once

#include "net/http/connection.h"
#include "net/http/response.h"
#include "net/service/service.h"

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <string>

namespace braid::net::weights {

// POST /update_weights: newer tensors for a model or a network, from a path, shared memory, or the body. All own their arguments.
boost::asio::awaitable<http::Response> update(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection,
                                              std::string body);

// The same as another server (--peers) has done it: refused, with nothing changed, where it comes to another revision.
boost::asio::awaitable<http::Response> update_as(std::shared_ptr<Service> service, std::string body, std::string revision);

// POST /weight_checker: SHA-256 of every tensor of a model or a network.
boost::asio::awaitable<http::Response> check(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection,
                                             std::string body);

// GET /weight_info
http::Response info(const ServiceStatus& status);

// POST /update_weight_version: what the revision is called.
http::Response name_version(Service& service, std::string& body);

}  // namespace braid::net::weights
