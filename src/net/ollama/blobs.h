// Files that a model will be made of: HEAD and POST /api/blobs/:digest.
#pragma once

#include "net/http/connection.h"
#include "net/http/request.h"
#include "net/log/request_record.h"
#include "net/service/service.h"

#include <boost/asio/awaitable.hpp>
#include <memory>

namespace braid::net::ollama {

// 200 or 404.
boost::asio::awaitable<bool> find_blob(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection,
                                       http::Request request, RequestRecord& record);

// 201 when all of the body is here and has the digest.
boost::asio::awaitable<bool> receive_blob(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection,
                                          http::Request request, RequestRecord& record);

}  // namespace braid::net::ollama
