#include "files/gguf_foreign.h"

#include "files/gguf_cursor.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <string>
#include <string_view>

namespace braid::files {
namespace {

bool begins_with_markup(std::string_view head) {
  const std::size_t start = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (start == std::string_view::npos) return false;
  std::string word(head.substr(start, 14));
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return word.starts_with("<!doctype html") || word.starts_with("<html") || word.starts_with("<?xml");
}

// safetensors: the length of a JSON header as 8 bytes, then the header.
bool is_safetensors(std::string_view head) {
  return head.size() > 9 && head[8] == '{' && (head[9] == '"' || head[9] == ' ') && head[6] == 0 && head[7] == 0;
}

const char* likely_cause(std::string_view head) {
  if (head.starts_with("version https://git-lfs"))
    return "this is a git-lfs pointer, not the model: run 'git lfs pull' or download the file itself";
  if (begins_with_markup(head)) return "this is a web page: the download link was probably not the file's own, or asked for a login";
  // The old formats wrote their magic as a little-endian number.
  if (head.starts_with("tjgg") || head.starts_with("lmgg") || head.starts_with("fmgg") || head.starts_with("algg"))
    return "this is a GGML, GGMF or GGJT file, the predecessor of GGUF: download or convert the model as GGUF";
  if (is_safetensors(head)) return "this looks like a safetensors file: convert the model to GGUF";
  if (head.starts_with("PK\x03\x04")) return "this is a zip archive or a PyTorch checkpoint: convert the model to GGUF";
  if (head.starts_with("\x1f\x8b") || head.starts_with("\x28\xb5\x2f\xfd") ||
      head.starts_with("\xfd"
                       "7zXZ"))
    return "this is a compressed file: unpack it first";
  if (head.starts_with("FUGG")) return "this is a byte-swapped GGUF file";
  if (head.find_first_not_of('\0') == std::string_view::npos) return "the file begins with zeros: the download is probably incomplete";
  return nullptr;
}

}  // namespace

std::optional<Error> recognise_foreign(const ByteSource& source) {
  constexpr std::size_t kLookedAt = 64;
  const auto bytes = source.bytes();
  if (bytes.empty())
    return Error{
        ErrorCode::kBadFile, source.name() + ": at offset 0: found an empty file, expected a GGUF model; the download probably failed", {}};
  const std::string_view head(reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), kLookedAt));
  if (head.starts_with("GGUF")) return std::nullopt;
  const char* cause = likely_cause(head);
  return Error{ErrorCode::kBadFile,
               fmt::format("{}: at offset 0: found {}, expected 'GGUF'{}{}", source.name(), in_quotes(head.substr(0, 4)),
                           cause != nullptr ? "; " : "", cause != nullptr ? cause : ""),
               {}};
}

}  // namespace braid::files
