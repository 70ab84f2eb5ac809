// What the bytes of an answer depend on besides the request, as one name.
#pragma once

#include "files/gguf.h"
#include "kernels/kv_type.h"
#include "model/language_model.h"

#include <string>
#include <string_view>

namespace braid::app {

// 16 hexadecimal digits of all metadata, of each tensor's name, shape, type, first and last bytes, and of the options that its answers
// depend on: enough to tell models apart without reading gigabytes.
std::string model_digest(const files::GgufFile& file, const model::LoadOptions& options);

// "braid-<version>+<build>-<tier>-<KV type>-<model>". The build is a digest of the build ID that the linker has made of the program.
std::string fingerprint(std::string_view tier, kernels::KvType kv_type, std::string_view model_digest);

}  // namespace braid::app
