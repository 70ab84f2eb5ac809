// Servers that are to have the same adapters and weights (--peers): what this one has, and changes that others bring.
#pragma once

#include "net/http/connection.h"
#include "net/http/response.h"
#include "net/service/service.h"

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <string>

namespace braid::net::peers {

// GET /v1/peers: the changes that this server has, what it lacks, and how the others were found last.
http::Response state(const Service& service);

// POST /v1/peers/changes: one that was made on another server, which is repeated here if it comes to the same revision. Owns its arguments.
boost::asio::awaitable<http::Response> take(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection,
                                            std::string body);

// Repeats what this server has been given and is without, since it was started again or its model loaded anew. Does nothing while another
// of these runs, or shortly after one has failed.
boost::asio::awaitable<void> catch_up(std::shared_ptr<Service> service);

}  // namespace braid::net::peers
