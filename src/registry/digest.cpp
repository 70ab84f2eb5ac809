#include "registry/digest.h"

#include "registry/durable_file.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/evp.h>
#include <vector>

namespace braid::registry {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

bool is_digit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

}  // namespace

Result<Digest> Digest::parse(std::string_view text) {
  constexpr std::string_view kName = "sha256";
  const bool named = text.starts_with(kName) && text.size() == kName.size() + 65 && (text[6] == ':' || text[6] == '-');
  const std::string_view digits = named ? text.substr(kName.size() + 1) : std::string_view();
  if (!named || !std::ranges::all_of(digits, is_digit))
    return invalid_argument(fmt::format("'{}' is no digest: sha256: and 64 hexadecimal digits", text.substr(0, 100)), "digest");
  return Digest(std::string(digits));
}

Hasher::Hasher() : context_(EVP_MD_CTX_new()) {
  if (context_ == nullptr) throw std::bad_alloc();
  EVP_DigestInit_ex(context_, EVP_sha256(), nullptr);
}

Hasher::~Hasher() { EVP_MD_CTX_free(context_); }

void Hasher::add(std::string_view bytes) { EVP_DigestUpdate(context_, bytes.data(), bytes.size()); }

Digest Hasher::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned size = 0;
  EVP_DigestFinal_ex(context_, bytes.data(), &size);
  return Digest::of_digits(fmt::format("{:02x}", fmt::join(bytes.begin(), bytes.begin() + size, "")));
}

Digest digest_of(std::string_view bytes) {
  Hasher hasher;
  hasher.add(bytes);
  return hasher.finish();
}

Result<Digest> digest_of_file(const std::string& path) {
  Result<OpenFile> file = OpenFile::read(path);
  if (!file) return file.error();
  Hasher hasher;
  std::vector<char> piece(kPieceBytes);
  for (std::uint64_t at = 0;;) {
    const Result<std::size_t> size = file->read_at(piece, at);
    if (!size) return size.error();
    if (*size == 0) return hasher.finish();
    hasher.add({piece.data(), *size});
    at += *size;
  }
}

}  // namespace braid::registry
