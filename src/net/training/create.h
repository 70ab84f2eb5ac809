// POST /v1/training/jobs: a head fitted in the background, which becomes an adapter.
#pragma once

#include "net/http/connection.h"
#include "net/http/response.h"
#include "net/service/service.h"
#include "net/training/jobs.h"

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <string>

namespace braid::net::training {

// Answers with the job, which goes on without its client: at the lowest priority, in pieces of a few milliseconds. It holds the model. `jobs`
// outlives it.
boost::asio::awaitable<http::Response> create(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection, Jobs& jobs,
                                              std::string body);

}  // namespace braid::net::training
