#include "net/wish/seal.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <openssl/sha.h>

namespace braid::net::wish {
namespace {

constexpr std::string_view kBegin = "braid1.";
constexpr std::size_t kDigestBytes = 12;  // of SHA-256
// RFC 4648, 5
constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string digest_of(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return {reinterpret_cast<const char*>(digest.data()), kDigestBytes};
}

void append_base64url(std::string& out, std::string_view bytes) {
  std::uint32_t bits = 0;
  unsigned held = 0;  // of them
  for (const char byte : bytes) {
    bits = (bits << 8U | static_cast<unsigned char>(byte)) & 0xFFFFU;
    for (held += 8; held >= 6; held -= 6) out += kDigits[(bits >> (held - 6)) & 0x3FU];
  }
  if (held > 0) out += kDigits[(bits << (6 - held)) & 0x3FU];
}

std::optional<std::string> from_base64url(std::string_view digits) {
  std::string bytes;
  std::uint32_t bits = 0;
  unsigned held = 0;
  for (const char digit : digits) {
    const std::size_t value = kDigits.find(digit);
    if (value == std::string_view::npos) return std::nullopt;
    bits = (bits << 6U | static_cast<std::uint32_t>(value)) & 0xFFFFU;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes += static_cast<char>((bits >> held) & 0xFFU);
  }
  return bytes;
}

}  // namespace

std::string sealed(std::string_view text) {
  std::string seal(kBegin);
  append_base64url(seal, digest_of(text).append(text));
  return seal;
}

std::optional<std::string> opened(std::string_view seal) {
  if (!seal.starts_with(kBegin)) return std::nullopt;
  std::optional<std::string> bytes = from_base64url(seal.substr(kBegin.size()));
  if (!bytes || bytes->size() < kDigestBytes) return std::nullopt;
  std::string text = bytes->substr(kDigestBytes);
  if (digest_of(text) != bytes->substr(0, kDigestBytes)) return std::nullopt;
  return text;
}

}  // namespace braid::net::wish
