// A generation from its body to the last byte of its answer: the one path of every dialect.
#pragma once

#include "net/access/account.h"
#include "net/generation/dialect.h"
#include "net/http/connection.h"
#include "net/http/request.h"
#include "net/service/service.h"

#include <boost/asio/awaitable.hpp>
#include <memory>

namespace braid::net {

class RequestRecord;

// True when the connection can take another request. Cancels the generation as soon as the client is gone, in every phase. `dialect`, `visit` and
// `record` outlive it; the record's status is what the client was told, or 499 when it went away first. Loop only.
boost::asio::awaitable<bool> generate(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection, http::Request request,
                                      const Dialect& dialect, access::Visit& visit, RequestRecord& record);

}  // namespace braid::net
