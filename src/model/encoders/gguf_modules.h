// What llama.cpp's converter calls the modules of encoders.
#pragma once

#include "model/encoders/encoder_shape.h"

#include <optional>
#include <string>
#include <string_view>

namespace braid::model {

// "bert.encoder.layer.3.attention.self.query" is "blk.3.attn_q": of matrices and norms whose rows lie in a file as in a folder. Nothing: it
// is none of these.
std::optional<std::string> gguf_module(std::string_view module);

// What its files call the architecture of an encoder from a folder or from a file. Nothing: it makes no files of such.
std::optional<std::string> gguf_architecture(const EncoderShape& shape);

}  // namespace braid::model
