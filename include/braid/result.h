// Expected failures are values. Exceptions are for bugs and exhaustion only.
#pragma once

#include <boost/system/result.hpp>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace braid {

// What went wrong, in the terms of a caller. `net` maps each code to one HTTP status in one table.
enum class ErrorCode {
  kInvalidArgument,   // 400: the request is wrong; `param` names the field
  kContextLength,     // 400: the prompt does not fit the context
  kUnknownResponse,   // 400: the response that a conversation goes on from is not kept
  kUnauthorized,      // 401: no API key, or a wrong one
  kForbidden,         // 403: not for this client
  kNotFound,          // 404: unknown model, id or route
  kMethodNotAllowed,  // 405
  kTooLarge,          // 413
  kUnsupportedMedia,  // 415: the body is in a form that is not read
  kRateLimited,       // 429: the client has used up what it may ask for
  kOverloaded,        // 429: the waiting queue is full
  kModelNotLoaded,    // 503: started without a model, or still loading
  kDraining,          // 503: shutting down
  kTimeout,           // 504: the request took longer than this server allows
  kCancelled,         // 499: the caller went away, or had it aborted
  kBadFile,           // cannot start: a model or config file is damaged or contradicts itself
  kUnsupported,       // cannot start: the file is sound, but uses something this build lacks
  kIo,                // the operating system refused
  kInternal,          // 500
};

// `message` is one sentence a user can act on. `param` is the path of the offending field, or empty.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  std::string param;
  std::chrono::seconds retry_after{0};  // kOverloaded: when to try again, estimated from measured rates; 0: not known
  std::uint32_t queue_position = 0;     // kOverloaded: the place in the queue that it would have had, from 1; 0: not known
};

template <class T>
using Result = boost::system::result<T, Error>;

inline Error invalid_argument(std::string message, std::string param = {}) {
  return {ErrorCode::kInvalidArgument, std::move(message), std::move(param)};
}

// Called by Result<T>::value() on an error: reaching it is a bug in the caller.
[[noreturn]] inline void throw_exception_from_error(const Error& error, const boost::source_location&) {
  throw std::logic_error("unchecked error: " + error.message);
}

}  // namespace braid
