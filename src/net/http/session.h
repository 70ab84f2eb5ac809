// One client's connection, from its first byte to its close.
#pragma once

#include "net/http/connection.h"
#include "net/service.h"

#include <boost/asio/awaitable.hpp>
#include <memory>

namespace braid::net::http {

boost::asio::awaitable<void> serve(std::shared_ptr<Service> service, std::shared_ptr<Connection> connection);

}  // namespace braid::net::http
