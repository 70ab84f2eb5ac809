#include "net/metrics/counters.h"

namespace braid::net {

Refusal refusal_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kContextLength:
      return Refusal::kContextLength;
    case ErrorCode::kTooLarge:
      return Refusal::kTooLarge;
    case ErrorCode::kUnauthorized:
    case ErrorCode::kForbidden:
      return Refusal::kUnauthorized;
    case ErrorCode::kRateLimited:
      return Refusal::kRateLimit;
    case ErrorCode::kTimeout:
      return Refusal::kTimeout;
    case ErrorCode::kOverloaded:
      return Refusal::kQueueFull;
    case ErrorCode::kModelNotLoaded:
      return Refusal::kNotReady;
    case ErrorCode::kDraining:
    case ErrorCode::kCancelled:
      return Refusal::kDraining;
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kUnknownResponse:
    case ErrorCode::kNotFound:
    case ErrorCode::kMethodNotAllowed:
    case ErrorCode::kUnsupportedMedia:
      return Refusal::kInvalid;
    case ErrorCode::kBadFile:
    case ErrorCode::kUnsupported:
    case ErrorCode::kIo:
    case ErrorCode::kInternal:
      return Refusal::kInternal;
  }
  return Refusal::kInternal;
}

}  // namespace braid::net
