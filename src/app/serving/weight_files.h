// What newer weights are read from.
#pragma once

#include "braid/result.h"
#include "braid/weights.h"
#include "files/byte_source.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace braid::app {

// In small hexadecimal digits.
std::string sha256(std::span<const std::byte> bytes);

// kBadFile with both digests, unless `checksum` is empty or that of the bytes; it may begin with "sha256:".
Result<void> check_sha256(const std::string& checksum, const files::ByteSource& source);

// The safetensors file of a source, as a copy, so that who writes to it meanwhile changes nothing; of a folder its model.safetensors. Its
// checksum is right. Any thread. kIo, kBadFile.
Result<std::shared_ptr<const files::ByteSource>> read_weights(const WeightSource& source);

// An error of files, as what a client did that named or sent them.
Error as_refusal(Error error);

}  // namespace braid::app
