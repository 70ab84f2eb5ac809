// The answers of the two endpoints as AnswerFormats.
#pragma once

#include "braid/text_codec.h"
#include "net/generation/answer_format.h"
#include "net/generation/call.h"
#include "net/openai/answer_parts.h"

#include <memory>

namespace braid::net::openai {

// `codec` outlives the format; of `call`, what is needed is copied.
std::unique_ptr<AnswerFormat> completion_format(const AnswerIdentity& identity, const TextCodec& codec, const GenerationCall& call);
std::unique_ptr<AnswerFormat> chat_format(const AnswerIdentity& identity, const TextCodec& codec, const GenerationCall& call);

}  // namespace braid::net::openai
