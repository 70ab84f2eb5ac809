// POST /v1/predict: named tensors into a small network, named tensors out.
#pragma once

#include "net/http/connection.h"
#include "net/http/response.h"
#include "net/service/service.h"

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <string>

namespace braid::net::predict {

// Ends early, with whatever answer, when the client goes.
boost::asio::awaitable<http::Response> answer(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection, Asker asker,
                                              std::string body);

}  // namespace braid::net::predict
