// The parameters of a generation, each with its range: one row of a table from field name to rule.
#pragma once

#include "braid/result.h"
#include "braid/served_model.h"
#include "braid/value.h"
#include "net/wish/body_fields.h"
#include "net/wish/wish.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace braid::net::wish {

// Reads one field that is not null into the fields. May move out of `value`.
using Reader = Result<void> (*)(BodyFields& fields, Value& value, const std::string& path);

// A number from `low`, or above it, to `high`.
struct NumberRule {
  float SamplingParams::*field;
  float low;
  float high;
  bool above_low = false;
};

// An integer from `low` to `high`. Without a limit above, what exceeds 32 bits means as much as the largest.
template <class Owner>
struct CountRule {
  std::int32_t Owner::*field;
  std::int32_t low;
  std::int64_t high = std::numeric_limits<std::int64_t>::max();
};

struct FlagRule {
  bool Wish::*field;
};

struct Parameter {
  std::string_view name;
  std::variant<Reader, NumberRule, CountRule<SamplingParams>, CountRule<Wish>, FlagRule> rule;
};

inline constexpr std::int32_t kMaxChoices = 128;  // for each prompt, as at OpenAI

// What completions and chats of all dialects take, by subject.
std::span<const Parameter> common_parameters();
std::span<const Parameter> sampling_parameters();
std::span<const Parameter> structured_output_parameters();
std::span<const Parameter> token_parameters();         // which tokens there may be, and how they are told: vLLM's
std::span<const Parameter> speculation_parameters();   // what is guessed of the answer
std::span<const Parameter> other_server_parameters();  // further names of llama-server, vLLM and SGLang

// What chats take besides, but for their messages and tools, which each dialect has in a form of its own.
std::span<const Parameter> chat_parameters();

// The tokens that spell `text` in the middle of a text.
Result<std::vector<TokenId>> inner_tokens(std::string_view text, const TextCodec& codec);

// fields.bad_words as banned sequences of the wish.
Result<void> encode_bad_words(BodyFields& fields);

// fields.samplers as the steps of the wish; those that are not named are switched off.
Result<void> order_samplers(BodyFields& fields);

// The texts of fields.dry_breakers, or the default ones, as tokens of the wish; only where it uses them.
Result<void> encode_breakers(BodyFields& fields);

// Parameters of OpenAI or of other servers that would change the answer and are not served: refused unless they ask for nothing. Some say
// nothing to this server, and stand here so that they are known.
std::span<const Parameter> refused_parameters();

// What the answers of Messages and Responses have no place for: refused there likewise.
std::span<const Parameter> untold_parameters();

using Tables = std::span<const std::span<const Parameter>>;

// Applies the first of `tables` that knows each member of `body`; null members are left out.
Result<void> read_parameters(BodyFields& fields, ValueDict& body, Tables tables);

// The same for the member `name` alone, which stands at `path` of the body.
Result<void> read_parameter(BodyFields& fields, std::string_view name, Value& value, const std::string& path, Tables tables);

// chat_parameters() and all that completions take too.
Tables chat_tables();
// The same for the dialects whose answers have no place for what OpenAI's may tell of tokens: such wishes are refused.
Tables foreign_tables();

// What stands for a chat's messages when its prompt is given in tokens.
ValueList unread_messages();

// Readers that dialects give other names.
Result<void> read_stop(BodyFields& fields, Value& value, const std::string& path);
Result<void> read_response_format(BodyFields& fields, Value& value, const std::string& path);
Result<void> read_reasoning_effort(BodyFields& fields, Value& value, const std::string& path);
Result<void> read_top_logprobs(BodyFields& fields, Value& value, const std::string& path);
Result<void> read_top_k(BodyFields& fields, Value& value, const std::string& path);
Result<void> read_regex(BodyFields& fields, Value& value, const std::string& path);
Result<void> read_grammar(BodyFields& fields, Value& value, const std::string& path);
Result<void> read_schema(BodyFields& fields, Value& value, const std::string& path);  // a JSON schema for the answer, or text of one

// {"name":…,"strict":…,"schema":…}, as OpenAI's dialects have it.
Result<void> read_named_schema(BodyFields& fields, Value& value, const std::string& path);

// Any JSON object as the answer.
Result<void> want_json_object(BodyFields& fields, const std::string& path);

// Fields that say nothing to a server which keeps nothing; their form is checked.
Result<void> accept_string(BodyFields& fields, Value& value, const std::string& path);
Result<void> accept_bool(BodyFields& fields, Value& value, const std::string& path);
Result<void> accept_object(BodyFields& fields, Value& value, const std::string& path);

// A list of token ids, each within the vocabulary.
Result<std::vector<TokenId>> read_token_ids(const Value& value, const std::string& path, const ServedModel& model);

}  // namespace braid::net::wish
