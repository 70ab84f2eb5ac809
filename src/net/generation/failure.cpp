#include "net/generation/failure.h"

namespace braid::net {

Failure failure_of(const Finish& finish) {
  if (!finish.error) return {{ErrorCode::kCancelled, "the request was aborted", ""}, RequestEnd::kCancelled};
  const bool dropped = finish.error->code == ErrorCode::kCancelled;  // by the engine, whose reason it is, and not by the answer's id
  return {*finish.error, dropped ? RequestEnd::kSlowReader : request_end_of(*finish.error)};
}

}  // namespace braid::net
