// Bodies of POST /v1/responses. Specification: the OpenAI API reference, "Create a model response".
#pragma once

#include "braid/result.h"
#include "braid/served_model.h"
#include "braid/value.h"
#include "net/responses/store.h"
#include "net/responses/tools.h"
#include "net/wish/wish.h"

#include <string>

namespace braid::net::responses {

// What the response object repeats of its request, and where it is to be kept.
struct ResponseDetails final : DialectDetails {
  explicit ResponseDetails(const Shelf& of_client) : shelf(of_client) {}

  ClientTools tools;  // what the client calls its functions
  bool sealed_reasoning = false;
  std::string echo;           // the members of the response object that the request decides, as JSON, with a comma before each
  ValueList input;            // items of this request
  ValueList conversation;     // chat messages so far, without instructions
  Shelf shelf;                // of its client
  bool is_to_be_kept = true;  // there
};

// The body, an object, becomes a chat: the conversation of previous_response_id, then `input`, under `instructions`. kUnknownResponse when the
// previous response is no longer kept, or another client's.
Result<Wish> read_response(Value& body, const ServedModel& model, const Shelf& shelf);

}  // namespace braid::net::responses
