// POST /v1/rl/act: what a policy does, given observations.
#pragma once

#include "net/http/connection.h"
#include "net/http/response.h"
#include "net/rl/sessions.h"
#include "net/service/service.h"

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>

namespace braid::net::rl {

// Of a policy that is a network. Nullopt, and the body as it was: it names a language model. Ends early, with whatever answer, when the client
// goes. `sessions` and `body` outlive it.
boost::asio::awaitable<std::optional<http::Response>> act(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection,
                                                          Sessions& sessions, Asker asker, std::string& body);

}  // namespace braid::net::rl
