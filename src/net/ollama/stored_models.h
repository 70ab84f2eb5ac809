// The models of this machine, by Ollama's routes: /api/tags, /api/show, /api/copy, /api/delete.
#pragma once

#include "braid/model_registry.h"
#include "net/http/connection.h"
#include "net/http/response.h"
#include "net/service/service.h"

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <string>

namespace braid::net::ollama {

// What the registry has, and what is served besides.
boost::asio::awaitable<http::Response> tags(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection,
                                            std::string body);

// {"model":…,"verbose":…} → details, settings, metadata and what it can do; of what is served and not in the registry, what is known here.
boost::asio::awaitable<http::Response> show(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection,
                                            std::string body);

// {"source":…,"destination":…}
boost::asio::awaitable<http::Response> copy(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection,
                                            std::string body);

// {"model":…}
boost::asio::awaitable<http::Response> remove(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection,
                                              std::string body);

}  // namespace braid::net::ollama
