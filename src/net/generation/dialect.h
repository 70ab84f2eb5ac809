// What an API dialect brings to a generation.
#pragma once

#include "braid/result.h"
#include "braid/served_model.h"
#include "net/generation/answer_format.h"
#include "net/generation/call.h"
#include "net/http/response.h"

#include <memory>
#include <string>
#include <string_view>

namespace braid::net {

namespace responses {
class Shelf;
}

// parse() may run on any thread, the others on the loop.
struct Dialect {
  std::string_view id_prefix;
  Result<GenerationCall> (*parse)(std::string& body, const ServedModel& model, const responses::Shelf& shelf);
  std::unique_ptr<AnswerFormat> (*make_format)(const std::string& id, const ServedModel& model, const GenerationCall& call);
  http::Response (*refuse)(const Error& error);  // instead of an answer
};

}  // namespace braid::net
