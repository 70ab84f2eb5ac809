// The key pair by which a registry knows who asks, in ssh-keygen's form. ollama.com is told the public one by whoever has an account there.
#pragma once

#include "braid/result.h"

#include <string>
#include <string_view>

namespace braid::registry {

std::string base64(std::string_view bytes);

// Ed25519, without a passphrase.
class SshKey {
 public:
  static SshKey make();
  // kBadFile for anything else.
  static Result<SshKey> parse(std::string_view text);
  // kNotFound: there is no such file.
  static Result<SshKey> read(const std::string& path);
  // Makes one where there is none, for nobody else's eyes.
  static Result<SshKey> read_or_make(const std::string& path);

  std::string text() const;         // as the file has it
  std::string public_line() const;  // "ssh-ed25519 AAAA…"
  // The public key and the signature of `words`, in base64, with a colon between.
  std::string signature_of(std::string_view words) const;

 private:
  explicit SshKey(std::string seed);

  std::string seed_;        // 32 bytes, which the private key is made of
  std::string public_key_;  // 32 bytes
};

}  // namespace braid::registry
