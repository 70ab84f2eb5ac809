// GET /slots and GET /props, in llama-server's form.
#pragma once

#include "net/http/response.h"
#include "net/service/service.h"

#include <string_view>

namespace braid::net::admin {

// The client's sequences that run, those that wait, then the places that are free, each an object. With fail_on_no_slot=1 in the query a
// 503 where none is free.
http::Response slots(const Service& service, std::string_view query, std::string_view client);

// Of the model that the query names, else of the first one: its template, its ends of texts and the defaults of a generation.
http::Response props(const Service& service, std::string_view query);

}  // namespace braid::net::admin
