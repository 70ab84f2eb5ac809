#include "net/text/tokenizer_info.h"

#include "net/http/error_response.h"
#include "net/http/query.h"
#include "net/json/write.h"

#include <fmt/format.h>
#include <iterator>
#include <optional>
#include <string>

namespace braid::net::text {
namespace {

void append_token(std::string& out, const char* name, const TextCodec& codec, std::optional<TokenId> token) {
  out.append(",\"").append(name).append("\":");
  if (token) {
    json::append_lossy_string(out, codec.token_bytes(*token));
  } else {
    out += "null";
  }
}

}  // namespace

http::Response tokenizer_info(const ServiceStatus& status, std::string_view query) {
  const Result<const ServedModel*> served = served_model(status, http::query_value(query, "model").value_or(std::string()));
  if (!served) return http::error_response(served.error());
  const ServedModel& model = **served;
  const TextEnds ends = model.codec->text_ends();
  http::Response response;
  std::string& out = response.body;
  fmt::format_to(std::back_inserter(out), R"({{"tokenizer_class":"braid","model_max_length":{},"vocab_size":{})", model.context_length,
                 model.codec->vocab_size());
  append_token(out, "bos_token", *model.codec, ends.bos);
  append_token(out, "eos_token", *model.codec, ends.eos);
  fmt::format_to(std::back_inserter(out), R"(,"add_bos_token":{},"add_eos_token":{},"chat_template":)", ends.adds_bos, ends.adds_eos);
  json::append_lossy_string(out, model.codec->template_source(ChatPrompt()));
  out += '}';
  return response;
}

}  // namespace braid::net::text
