// What llama.cpp's converter calls the modules of encoders.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace braid::model {

// "bert.encoder.layer.3.attention.self.query" is "blk.3.attn_q": of matrices and norms whose rows lie in a file as in a folder. Nothing: it
// is none of these.
std::optional<std::string> gguf_module(std::string_view module);

}  // namespace braid::model
