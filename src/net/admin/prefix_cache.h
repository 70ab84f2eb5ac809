// POST /reset_prefix_cache.
#pragma once

#include "net/http/response.h"
#include "net/service/service.h"

#include <string>

namespace braid::net::admin {

// All models forget the prefixes that no running sequence holds; what the disk has stays. Tells how many blocks that were.
http::Response reset_prefix_cache(const Service& service, std::string& body);

}  // namespace braid::net::admin
