#include "app/serving/weight_files.h"

#include "files/hf_folder.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>
#include <openssl/sha.h>
#include <utility>

namespace braid::app {

std::string sha256(std::span<const std::byte> bytes) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  std::string digits;
  for (const unsigned char byte : digest) digits += fmt::format("{:02x}", byte);
  return digits;
}

Result<void> check_sha256(const std::string& checksum, const files::ByteSource& source) {
  if (checksum.empty()) return {};
  std::string asked = checksum.substr(checksum.starts_with("sha256:") ? 7 : 0);
  std::ranges::transform(asked, asked.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::string found = sha256(source.bytes());
  if (found == asked) return {};
  return Error{ErrorCode::kBadFile, fmt::format("{}: its SHA-256 is {}, and {} was asked for", source.name(), found, asked), {}};
}

Result<std::shared_ptr<const files::ByteSource>> read_weights(const WeightSource& source) {
  std::shared_ptr<const files::ByteSource> bytes;
  if (source.path.empty()) {
    const auto* begin = reinterpret_cast<const std::byte*>(source.tensors.data());
    bytes = files::owned_bytes({begin, begin + source.tensors.size()}, "the tensors of the request");
  } else {
    const std::string file = files::is_folder(source.path) ? source.path + "/model.safetensors" : source.path;
    auto read = files::copy_file(file);
    if (!read) return read.error();
    bytes = std::move(*read);
  }
  if (const Result<void> sound = check_sha256(source.checksum, *bytes); !sound) return sound.error();
  return bytes;
}

Error as_refusal(Error error) {
  if (error.code == ErrorCode::kBadFile || error.code == ErrorCode::kUnsupported) error.code = ErrorCode::kInvalidArgument;
  if (error.code == ErrorCode::kIo) error.code = ErrorCode::kNotFound;
  return error;
}

}  // namespace braid::app
