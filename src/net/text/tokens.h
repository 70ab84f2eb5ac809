// POST /tokenize, /detokenize and /apply-template, with the fields of llama-server and vLLM.
#pragma once

#include "braid/result.h"
#include "braid/served_model.h"
#include "braid/value.h"
#include "net/generation/text_answer.h"

namespace braid::net::text {

// {"content" or "prompt": text} or {"messages": …} as in a chat → {"tokens":[…],"count":…,"max_model_len":…}. `add_special` is
// false for content and true for a prompt; a chat's template writes its own. `with_pieces` makes each token {"id":…,"piece":…},
// where a piece that is not UTF-8 is an array of bytes.
Result<TextAnswer> tokenize(Value& body, const ServedModel& model);

// {"tokens":[…]} → {"content":…}. Special tokens are written out; bytes that are not UTF-8 become U+FFFD.
Result<TextAnswer> detokenize(Value& body, const ServedModel& model);

// A chat request → {"prompt":…}: what the model would be given.
Result<TextAnswer> apply_template(Value& body, const ServedModel& model);

}  // namespace braid::net::text
