#include "net/responses/dialect.h"

#include "net/responses/item_references.h"
#include "net/responses/request.h"
#include "net/responses/response_format.h"

namespace braid::net::responses {
namespace {

class Responses final : public Dialect {
 public:
  Responses(ResponseStore& store, RunningResponses& running) : store_(store), running_(running) {}

  std::string_view id_prefix() const override { return "resp_"; }
  Result<Wish> read(Value& body, const ServedModel& model, std::string_view client) const override {
    return read_response(body, model, {store_, client});
  }
  std::size_t recalled_bytes(const Value& body, std::string_view client) const override { return named_bytes(body, {store_, client}); }
  std::unique_ptr<AnswerFormat> make_format(const std::string& id, const ServedModel& model, const GenerationCall& call) const override {
    return response_format(id, model, call, running_);
  }

 private:
  ResponseStore& store_;
  RunningResponses& running_;
};

}  // namespace

std::unique_ptr<const Dialect> responses(ResponseStore& store, RunningResponses& running) {
  return std::make_unique<Responses>(store, running);
}

}  // namespace braid::net::responses
