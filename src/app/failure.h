// What an exception that nobody expected tells an operator.
#pragma once

#include <exception>
#include <string>

namespace braid::app {

// Its own words, and where the system starts no more threads also which limit to raise. Any thread.
std::string explain_failure(const std::exception& failure);

}  // namespace braid::app
