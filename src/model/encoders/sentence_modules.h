// What sentence-transformers keeps beside a model: how its tokens become one vector, what follows, and the words that go before a text.
#pragma once

#include "braid/generation_request.h"
#include "braid/result.h"
#include "files/hf_folder.h"
#include "files/safetensors.h"
#include "model/encoders/encoder_shape.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace braid::model {

// The tensors of a Dense module, and the bytes that hold them.
struct DenseModule {
  EncoderDense shape;
  std::shared_ptr<const std::string> bytes;
  files::SafeTensors tensors;
};

struct SentenceModules {
  bool is_there = false;           // the folder has a modules.json
  std::optional<Pooling> pooling;  // nullopt: nothing says it
  std::vector<DenseModule> dense;
  bool normalizes = false;
  std::optional<std::int32_t> most_tokens;                   // max_seq_length
  std::vector<std::pair<std::string, std::string>> prompts;  // by name
  std::string default_prompt;                                // its name, or empty
  std::vector<std::int64_t> dimensions;                      // to which vectors may be cut; empty: nothing says it
};

// kBadFile or kUnsupported with the file's name. A folder without modules.json has none of it, but for what other files say.
Result<SentenceModules> read_sentence_modules(const files::HfFolder& folder);

}  // namespace braid::model
