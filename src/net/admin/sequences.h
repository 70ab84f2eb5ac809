// POST /v1/abort, GET /slots and GET /props.
#pragma once

#include "braid/served_model.h"
#include "net/http/response.h"
#include "net/service/service.h"

#include <string>
#include <string_view>

namespace braid::net::admin {

// Ends all choices of an answer of this client, which ends with an error. False when none of that id runs.
bool cancel_answer(const Service& service, const std::string& id, std::string_view client);

// {"id": of an answer's first chunk} ends all its choices; the answer ends with an error. 404 when no such answer of this client runs.
http::Response abort(Service& service, std::string& body, std::string_view client);

// The client's sequences that run or wait, each an object; running ones first.
http::Response slots(const Service& service, std::string_view client);

// What clients of llama-server ask for, of the model that the query names, else of the first one: the model, its template and the defaults of a generation.
http::Response props(const ServiceStatus& status, std::string_view query);

}  // namespace braid::net::admin
