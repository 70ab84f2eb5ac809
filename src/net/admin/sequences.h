// The answers that run, by their ids, and POST /v1/abort.
#pragma once

#include "net/http/response.h"
#include "net/service/service.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace braid::net::admin {

// Null when it does not run, or is another client's.
const RunningAnswer* find_answer(const Service& service, const std::string& id, std::string_view client);

// Ends all choices of an answer of this client, which ends with an error. False when none of that id runs.
bool cancel_answer(const Service& service, const std::string& id, std::string_view client);

// Ends the predictions with this id, of one client or of all; how many there were.
std::size_t cancel_predictions(const Service& service, const std::string& id, std::optional<std::string_view> client);

// {"id": of an answer's first chunk} ends all its choices, and the X-Request-Id of a prediction ends that; the answer is an error then. 404
// when no such answer of this client runs.
http::Response abort(Service& service, std::string& body, std::string_view client);

}  // namespace braid::net::admin
