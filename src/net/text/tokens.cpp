#include "net/text/tokens.h"

#include "net/generation/prompts.h"
#include "net/json/fields.h"
#include "net/json/write.h"
#include "net/openai/request.h"
#include "net/wish/parameters.h"

#include <fmt/format.h>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::net::text {
namespace {

// The first of `names` that is there and not null, or `fallback`.
Result<bool> flag(const Value& body, std::initializer_list<const char*> names, bool fallback) {
  for (const char* name : names) {
    const Value* value = body.find(name);
    if (value != nullptr && !value->is_null()) return json::read_bool(*value, name);
  }
  return fallback;
}

// Adds the tools that it leaves out to `answer`.
Result<RenderedChat> rendered_chat(Value& body, const ServedModel& model, TextAnswer& answer) {
  Result<Wish> wish = openai::read_chat(body, model);
  if (!wish) return wish.error();
  answer.tools_left_out = std::move(wish->tools_left_out);
  return render_chat(*model.codec, std::get<ChatPrompt>(wish->prompt));
}

Result<std::vector<TokenId>> encode_chat(Value& body, const ServedModel& model, TextAnswer& answer) {
  Result<Wish> wish = openai::read_chat(body, model);
  if (!wish) return wish.error();
  answer.tools_left_out = std::move(wish->tools_left_out);
  GenerationCall call(std::move(*wish));
  Result<std::vector<std::vector<TokenId>>> prompts = encode_prompts(model, call);
  if (!prompts) return prompts.error();
  return std::move(prompts->front());
}

Result<std::vector<TokenId>> encode_text(const Value& body, const TextCodec& codec) {
  const Value* const content = body.find("content");
  const bool is_content = content != nullptr && !content->is_null();
  const char* const field = is_content ? "content" : "prompt";
  const Value* value = body.find(field);
  if (value == nullptr || value->is_null()) return invalid_argument("one of 'content', 'prompt' and 'messages' must be given", "content");
  const Result<std::string> text = json::read_string(*value, field);
  if (!text) return text.error();
  const Result<bool> add_special = flag(body, {"add_special", "add_special_tokens"}, !is_content);
  if (!add_special) return add_special.error();
  const Result<bool> parse_special = flag(body, {"parse_special"}, true);
  if (!parse_special) return parse_special.error();
  return codec.encode(*text, {.add_special = *add_special, .parse_special = *parse_special});
}

void append_piece(std::string& out, const TextCodec& codec, TokenId id) {
  const std::string bytes = codec.token_bytes(id);
  fmt::format_to(std::back_inserter(out), R"({{"id":{},"piece":)", id);
  if (json::is_utf8(bytes)) {
    json::append_string(out, bytes);
  } else {
    const std::vector<unsigned> numbers = [&bytes] {
      std::vector<unsigned> all;
      for (const char c : bytes) all.push_back(static_cast<unsigned char>(c));
      return all;
    }();
    fmt::format_to(std::back_inserter(out), "[{}]", fmt::join(numbers, ","));
  }
  out += '}';
}

// ,"token_strs":[…], as vLLM has it
void append_strings(std::string& out, const TextCodec& codec, const std::vector<TokenId>& ids) {
  std::string_view separator = "";
  out += R"(,"token_strs":[)";
  for (const TokenId id : ids) {
    out += std::exchange(separator, ",");
    json::append_lossy_string(out, codec.token_bytes(id));
  }
  out += ']';
}

// Whether the tokenizer begins every text with a space of its own.
bool adds_space(const TextCodec& codec) {
  const auto ids = codec.encode("x", {.add_special = false, .parse_special = false});
  return ids && !ids->empty() && codec.token_bytes(ids->front()).starts_with(' ');
}

}  // namespace

Result<TextAnswer> tokenize(Value& body, const ServedModel& model) {
  const Result<bool> with_pieces = flag(body, {"with_pieces"}, false);
  if (!with_pieces) return with_pieces.error();
  const Result<bool> with_strings = flag(body, {"return_token_strs"}, false);
  if (!with_strings) return with_strings.error();
  TextAnswer answer;
  const Value* messages = body.find("messages");
  const bool is_chat = messages != nullptr && !messages->is_null();
  const Result<std::vector<TokenId>> ids = is_chat ? encode_chat(body, model, answer) : encode_text(body, *model.codec);
  if (!ids) return ids.error();
  std::string& out = answer.document = R"({"tokens":[)";
  if (*with_pieces) {
    for (std::size_t i = 0; i < ids->size(); ++i) {
      if (i > 0) out += ',';
      append_piece(out, *model.codec, (*ids)[i]);
    }
  } else {
    fmt::format_to(std::back_inserter(out), "{}", fmt::join(*ids, ","));
  }
  fmt::format_to(std::back_inserter(out), R"(],"count":{},"max_model_len":{})", ids->size(), model.context_length);
  if (*with_strings) append_strings(out, *model.codec, *ids);
  out += '}';
  return answer;
}

Result<TextAnswer> detokenize(Value& body, const ServedModel& model) {
  const Value* tokens = body.find("tokens");
  if (tokens == nullptr) return invalid_argument("'tokens' is missing", "tokens");
  const Result<std::vector<TokenId>> ids = wish::read_token_ids(*tokens, "tokens", model);
  if (!ids) return ids.error();
  std::string content;
  for (const TokenId id : *ids) content += model.codec->token_bytes(id);
  if (content.starts_with(' ') && adds_space(*model.codec)) content.erase(0, 1);
  TextAnswer answer{R"({"content":)"};
  json::append_lossy_string(answer.document, content);
  answer.document += '}';
  return answer;
}

Result<TextAnswer> apply_template(Value& body, const ServedModel& model) {
  TextAnswer answer{R"({"prompt":)"};
  const Result<RenderedChat> rendered = rendered_chat(body, model, answer);
  if (!rendered) return rendered.error();
  json::append_lossy_string(answer.document, rendered->text);
  answer.document += '}';
  return answer;
}

}  // namespace braid::net::text
