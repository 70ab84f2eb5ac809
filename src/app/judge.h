// Models that were trained to say whether a document answers a query (Qwen3-Reranker). Their files are those of any model that generates, but
// for what they say about themselves.
#pragma once

#include "braid/result.h"
#include "files/gguf.h"
#include "model/language_model.h"
#include "text/codec.h"

#include <optional>
#include <string>

namespace braid::app {

// The words between which it decides; nothing: it is no judge. `path`: of the file, or of the folder that `file` was read from. Any of these
// makes one: the name of the model, of the file or of the folder; tags; a template that asks for the judgment; what a folder says to
// sentence-transformers and vLLM.
std::optional<model::LoadOptions::Judging> judging_of(const std::string& id, const std::string& path, const files::GgufFile& file,
                                                      const text::ModelCodec& codec);

}  // namespace braid::app
