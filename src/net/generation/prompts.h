// From a call to the engine's requests: rendering, tokenising and the checks against the context.
#pragma once

#include "braid/generation_request.h"
#include "braid/result.h"
#include "braid/served_model.h"
#include "net/generation/call.h"
#include "net/generation/dialect.h"

#include <string>
#include <vector>

namespace braid::net {

// Completion texts are encoded with the model's own BOS/EOS; special tokens in them count, as they do in llama-server and vLLM.
// A chat's rendered template writes its own BOS, and tells call.syntax. Token ids are taken as they are. May run on any thread.
// Images of a chat are read first, unless they have been.
Result<std::vector<std::vector<TokenId>>> encode_prompts(const ServedModel& model, GenerationCall& call);

// A chat as the model's template writes it. Tools become text in `chat` where the template does not take them. Likewise.
Result<RenderedChat> render_chat(const TextCodec& codec, ChatPrompt& chat);

// Bytes of the texts that are to be encoded, each as often as it is; a chat, whose body is no shorter, has none, and several are as many
// texts of some length.
std::size_t bytes_to_encode(const GenerationCall& call);

// What a chat's last message says, if the answer goes on with it: `echo` of a chat. Likewise.
std::vector<std::string> last_words(const ChatPrompt& chat);

// The prompts as text, for `echo`. Likewise.
std::vector<std::string> prompt_texts(const TextCodec& codec, const std::vector<PromptItem>& items);

// The candidates of the first prompt, then those of the second and so on, each with max_tokens cut to the room left. kContextLength
// when a prompt leaves no room for one token of an answer, or is too long even for none; `voice` says so.
Result<std::vector<GenerationRequest>> make_requests(const ServedModel& model, const GenerationCall& call, const std::string& id,
                                                     std::uint64_t seed, std::vector<std::vector<TokenId>> prompts, const Voice& voice);

// Request::id of one of the `choices` sequences of an answer.
std::string choice_id(const std::string& answer_id, std::size_t choice, std::size_t choices);
std::string answer_id(const std::string& choice_id);  // the way back

}  // namespace braid::net
