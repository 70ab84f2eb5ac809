// Percent-encoding, and the query of a request's target.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace braid::net::http {

// What is no code stays as it is.
std::string percent_decode(std::string_view text);

// The decoded value of the first `name=value` of a query, where "+" is a space. Nullopt when there is none.
std::optional<std::string> query_value(std::string_view query, std::string_view name);

}  // namespace braid::net::http
