// Requests that work with text and tokens and generate nothing.
#pragma once

#include "braid/result.h"
#include "braid/served_model.h"
#include "braid/value.h"
#include "net/generation/dialect.h"
#include "net/generation/text_answer.h"
#include "net/http/connection.h"
#include "net/http/response.h"
#include "net/service/service.h"

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <string>

namespace braid::net {

struct TextJob {
  // Of a body, a JSON object. Touches what is immutable of the model only: any thread.
  Result<TextAnswer> (*run)(Value& body, const ServedModel& model);
  const Voice* voice = &kOpenAiVoice;
  bool shows_images = false;  // its body may: a model that sees makes it long
};

// The same with what it was bound to, which any thread may use as well.
struct TextWork {
  std::function<Result<TextAnswer>(Value& body, const ServedModel& model)> run;
  const Voice* voice = &kOpenAiVoice;
  bool is_long = false;       // whatever the size of its body
  bool shows_images = false;  // as above
};

// Runs the work here when it is short, as it is with a short body, else on the codec worker, unless the client goes before its turn comes.
boost::asio::awaitable<http::Response> answer_text(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection,
                                                   TextWork work, std::string body);

}  // namespace braid::net
