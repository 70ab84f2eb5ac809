// GET /v1/admin/log: the last lines of the log.
#pragma once

#include "net/http/response.h"
#include "net/log/log_tail.h"

#include <memory>
#include <string_view>

namespace braid::net::admin {

// {"object":"log","first":…,"lines":[…]}: the lines after the number `after` of the query, the last `limit` of them. `first` is the number
// of the first one. 404 where no tail is kept.
http::Response log_tail(const std::shared_ptr<const LogTail>& tail, std::string_view query);

}  // namespace braid::net::admin
