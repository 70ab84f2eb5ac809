// A wish, and what its preparation adds: what a generation works with.
#pragma once

#include "braid/constraint.h"
#include "braid/image_reader.h"
#include "braid/media_span.h"
#include "braid/pixels.h"
#include "braid/text_codec.h"
#include "net/generation/parser/answer_syntax.h"
#include "net/wish/wish.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace braid::net {

struct GenerationCall : Wish {
  GenerationCall() = default;
  explicit GenerationCall(Wish wish) : Wish(std::move(wish)) {}

  std::string client;                                            // GenerationRequest's
  std::shared_ptr<const Constraint> constraint;                  // what the spec was compiled to
  std::vector<std::shared_ptr<const TextSearch>> stop_searches;  // of stop_patterns
  std::optional<AnswerSyntax> syntax;       // how a chat's answer is split, known once it is rendered; nothing: it is text throughout
  std::vector<std::string> echoes;          // [prompts]: the prompts' texts, if `echo`; of a chat, the last message's that is gone on with
  std::vector<std::int32_t> second_begins;  // [prompts], GenerationRequest::second_text, if there are second_texts
  std::vector<TokenRange> documents;        // likewise: of each prompt the tokens of its second text
  std::vector<ReadImage> read;              // [images], once they are
  std::vector<MediaSpan> media;             // of a chat's prompt: GenerationRequest's
  std::vector<SharedPixels> pixels;         // likewise: its images
  std::vector<std::vector<TokenId>> prompt_tokens;  // [prompts], if `return_token_ids`
};

}  // namespace braid::net
