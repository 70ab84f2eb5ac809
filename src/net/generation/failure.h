// What ends a whole answer before its time.
#pragma once

#include "braid/result.h"
#include "braid/token_event.h"
#include "net/log/request_record.h"

namespace braid::net {

struct Failure {
  Error error;     // for the client
  RequestEnd end;  // for the record, of an answer that had begun
  bool missed_deadline = false;
};

// Why the engine has ended a sequence before its time.
Failure failure_of(const Finish& finish);

}  // namespace braid::net
