// One client's connection, from its first byte to its close.
#pragma once

#include "net/endpoints/dialects.h"
#include "net/http/connection.h"
#include "net/service/service.h"

#include <boost/asio/awaitable.hpp>
#include <memory>

namespace braid::net {

boost::asio::awaitable<void> serve(std::shared_ptr<Service> service, std::shared_ptr<Dialects> dialects,
                                   std::shared_ptr<http::Connection> connection);

}  // namespace braid::net
