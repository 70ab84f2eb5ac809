// From the images that a chat shows to what its model reads of them.
#pragma once

#include "braid/result.h"
#include "braid/served_model.h"
#include "braid/text_codec.h"
#include "net/generation/call.h"

#include <string>
#include <string_view>
#include <vector>

namespace braid::net {

// kInvalidArgument: the model reads text alone; `seeing` are the names of those here that see.
Error cannot_see(const ServedModel& model, const GenerationCall& call, const std::vector<std::string>& seeing);

// Decodes the call's images and makes pixels of them, once. kInvalidArgument names the one that is broken, or that has not been fetched;
// kContextLength: they take more than the model's context. Takes long: any thread but the loop.
Result<void> read_images(const ServedModel& model, GenerationCall& call);

// The chat as the model's template writes it, each image in its place as the model's processor writes it. After read_images(). Any thread.
Result<RenderedChat> render_with_images(const ServedModel& model, const GenerationCall& call);

// Finds the images' vectors among the tokens of such a chat: the call's `media` and `pixels`.
Result<void> place_images(const ServedModel& model, GenerationCall& call, const std::vector<TokenId>& tokens);

// Whether a template takes contents as lists of parts alone, as those of some models that see do; and the conversation in that form.
bool wants_parts(std::string_view source);
void write_contents_as_parts(ChatPrompt& chat);

}  // namespace braid::net
