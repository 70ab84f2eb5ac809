// Adapters: /v1/adapters, and the routes of vLLM and llama-server for them.
#pragma once

#include "braid/served_model.h"
#include "net/http/connection.h"
#include "net/http/response.h"
#include "net/service/service.h"

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <string>
#include <string_view>

namespace braid::net::adapters {

// GET /v1/adapters, and one of them; `name` may be "model:adapter".
http::Response list(const ServiceStatus& status);
http::Response show(const ServiceStatus& status, std::string_view name);
http::Response unload(const Service& service, std::string_view name);

// POST /v1/adapters and /v1/load_lora_adapter: a folder or a file under one of ServerOptions::adapter_dirs. All own their arguments.
boost::asio::awaitable<http::Response> load(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection,
                                            std::string body);
boost::asio::awaitable<http::Response> load_lora(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection,
                                                 std::string body);
http::Response unload_lora(const Service& service, std::string& body);

// POST /update_adapter_weights: a new revision of one that is loaded, from a path, or from the body, which is then a safetensors file whose
// metadata have what the object would.
boost::asio::awaitable<http::Response> update(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection,
                                              std::string body);

// The same as another server (--peers) has done it; what comes to another revision is refused, with nothing changed.
boost::asio::awaitable<http::Response> load_as(std::shared_ptr<Service> service, std::string body, std::string revision);
boost::asio::awaitable<http::Response> load_lora_as(std::shared_ptr<Service> service, std::string body, std::string revision);
boost::asio::awaitable<http::Response> update_as(std::shared_ptr<Service> service, std::string body, std::string revision);
boost::asio::awaitable<http::Response> unload_as(std::shared_ptr<Service> service, std::string model, std::string name);

// GET /lora-adapters, llama-server's list.
http::Response llama_list(const ServiceStatus& status);

}  // namespace braid::net::adapters
