#include "registry/ssh_key.h"

#include "registry/durable_file.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <new>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <optional>
#include <unistd.h>
#include <utility>

namespace braid::registry {
namespace {

constexpr std::string_view kBegin = "-----BEGIN OPENSSH PRIVATE KEY-----";
constexpr std::string_view kEnd = "-----END OPENSSH PRIVATE KEY-----";
constexpr std::string_view kMagic{"openssh-key-v1\0", 15};
constexpr std::string_view kType = "ssh-ed25519";
constexpr std::size_t kKeyBytes = 32;
constexpr std::size_t kSignatureBytes = 64;
constexpr std::size_t kBlockBytes = 8;  // that an unencrypted private part is filled up to
constexpr std::size_t kLineLetters = 70;
constexpr std::size_t kMostKeyFileBytes = 16384;

using KeyHandle = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

const unsigned char* octets(std::string_view bytes) { return reinterpret_cast<const unsigned char*>(bytes.data()); }
unsigned char* octets(std::string& bytes) { return reinterpret_cast<unsigned char*>(bytes.data()); }

// OpenSSL fails here only when memory or the system's random numbers do.
void require(bool done) {
  if (!done) throw std::bad_alloc();
}

KeyHandle private_key(const std::string& seed) {
  KeyHandle key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, octets(seed), seed.size()), EVP_PKEY_free);
  require(key != nullptr);
  return key;
}

std::optional<std::string> from_base64(std::string letters) {
  std::erase_if(letters, [](char c) { return c == '\n' || c == '\r'; });
  if (letters.empty() || letters.size() % 4 != 0) return std::nullopt;
  std::string bytes(letters.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(octets(bytes), octets(letters), static_cast<int>(letters.size()));
  if (size < 0) return std::nullopt;
  bytes.resize(static_cast<std::size_t>(size) - (letters.ends_with("==") ? 2 : letters.ends_with('=') ? 1 : 0));
  return bytes;
}

void put_number(std::string& out, std::size_t number) {
  for (const unsigned shift : {24U, 16U, 8U, 0U}) out += static_cast<char>(number >> shift & 0xFFU);
}

void put(std::string& out, std::string_view bytes) {
  put_number(out, bytes.size());
  out += bytes;
}

// Reads what these write; nothing more once something was missing.
class KeyReader {
 public:
  explicit KeyReader(std::string_view bytes) : bytes_(bytes) {}

  std::uint32_t number() {
    std::uint32_t number = 0;
    for (const char c : raw(4)) number = number << 8U | static_cast<unsigned char>(c);
    return number;
  }
  std::string_view field() { return raw(number()); }
  bool has_all() const { return !is_short_; }

 private:
  std::string_view raw(std::size_t count) {
    is_short_ = is_short_ || count > bytes_.size();
    if (is_short_) return {};
    const std::string_view found = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return found;
  }

  std::string_view bytes_;
  bool is_short_ = false;
};

std::string public_blob(const std::string& key) {
  std::string blob;
  put(blob, kType);
  put(blob, key);
  return blob;
}

// The seed, of a key without a passphrase.
std::optional<std::string> seed_of(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) return std::nullopt;
  KeyReader outer(bytes.substr(kMagic.size()));
  const bool is_plain = outer.field() == "none";  // the cipher
  outer.field();                                  // of the passphrase, how
  outer.field();                                  // and with what
  const bool is_one = outer.number() == 1;
  outer.field();  // the public key
  KeyReader inner(outer.field());
  const bool is_whole = inner.number() == inner.number();
  const bool is_known = inner.field() == kType;
  inner.field();  // the public key
  const std::string_view both = inner.field();
  if (!is_plain || !is_one || !is_whole || !is_known || !outer.has_all() || !inner.has_all() || both.size() != 2 * kKeyBytes)
    return std::nullopt;
  return std::string(both.substr(0, kKeyBytes));
}

// With these bytes, readable for its owner alone, unless there is such a file already.
Result<void> make_private_file(const std::string& path, std::string_view bytes) {
  std::string draft = path + ".XXXXXX";
  const int file = ::mkostemp(draft.data(), O_CLOEXEC);
  if (file < 0) return system_error("cannot write", path);
  const ssize_t written = ::write(file, bytes.data(), bytes.size());
  if (written >= 0 && std::cmp_not_equal(written, bytes.size())) errno = ENOSPC;
  const bool is_made =
      std::cmp_equal(written, bytes.size()) && ::fsync(file) == 0 && (::link(draft.c_str(), path.c_str()) == 0 || errno == EEXIST);
  const int failure = errno;
  ::close(file);
  ::unlink(draft.c_str());
  errno = failure;
  if (!is_made) return system_error("cannot write", path);
  return sync_folder(std::filesystem::path(path).parent_path().string());
}

}  // namespace

std::string base64(std::string_view bytes) {
  std::string letters((bytes.size() + 2) / 3 * 4 + 1, '\0');
  letters.resize(static_cast<std::size_t>(EVP_EncodeBlock(octets(letters), octets(bytes), static_cast<int>(bytes.size()))));
  return letters;
}

SshKey::SshKey(std::string seed) : seed_(std::move(seed)), public_key_(kKeyBytes, '\0') {
  std::size_t size = kKeyBytes;
  require(EVP_PKEY_get_raw_public_key(private_key(seed_).get(), octets(public_key_), &size) == 1);
}

SshKey SshKey::make() {
  std::string seed(kKeyBytes, '\0');
  require(RAND_bytes(octets(seed), static_cast<int>(seed.size())) == 1);
  return SshKey(std::move(seed));
}

Result<SshKey> SshKey::parse(std::string_view text) {
  const std::size_t begin = text.find(kBegin);
  const std::size_t end = text.find(kEnd);
  std::optional<std::string> bytes;
  if (begin != std::string_view::npos && end != std::string_view::npos && begin + kBegin.size() < end)
    bytes = from_base64(std::string(text.substr(begin + kBegin.size(), end - begin - kBegin.size())));
  std::optional<std::string> seed = bytes ? seed_of(*bytes) : std::nullopt;
  if (!seed) return Error{ErrorCode::kBadFile, "no key of the kind that `ssh-keygen -t ed25519 -N ''` makes", ""};
  return SshKey(std::move(*seed));
}

Result<SshKey> SshKey::read(const std::string& path) {
  const Result<std::string> text = read_small_file(path, kMostKeyFileBytes);
  if (!text) return text.error();
  Result<SshKey> key = parse(*text);
  if (!key) return Error{key.error().code, fmt::format("{}: {}", path, key.error().message), ""};
  return key;
}

Result<SshKey> SshKey::read_or_make(const std::string& path) {
  Result<SshKey> known = read(path);
  if (known || known.error().code != ErrorCode::kNotFound) return known;
  if (const Result<void> made = make_private_file(path, make().text()); !made) return made.error();
  return read(path);  // perhaps somebody else's, who was quicker
}

std::string SshKey::text() const {
  std::string inner;
  std::string check(4, '\0');
  require(RAND_bytes(octets(check), static_cast<int>(check.size())) == 1);
  inner += check + check;
  put(inner, kType);
  put(inner, public_key_);
  put(inner, seed_ + public_key_);
  put(inner, "braid");  // the comment
  for (char fill = 1; inner.size() % kBlockBytes != 0; ++fill) inner += fill;
  std::string bytes(kMagic);
  for (const std::string_view field : {"none", "none", ""}) put(bytes, field);
  put_number(bytes, 1);
  put(bytes, public_blob(public_key_));
  put(bytes, inner);
  const std::string letters = base64(bytes);
  std::string text = fmt::format("{}\n", kBegin);
  for (std::size_t at = 0; at < letters.size(); at += kLineLetters) text += letters.substr(at, kLineLetters) + "\n";
  return text + fmt::format("{}\n", kEnd);
}

std::string SshKey::public_line() const { return fmt::format("{} {}", kType, base64(public_blob(public_key_))); }

std::string SshKey::signature_of(std::string_view words) const {
  const KeyHandle key = private_key(seed_);
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  require(context != nullptr && EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1);
  std::string signature(kSignatureBytes, '\0');
  std::size_t size = signature.size();
  require(EVP_DigestSign(context.get(), octets(signature), &size, octets(words), words.size()) == 1);
  return fmt::format("{}:{}", base64(public_blob(public_key_)), base64(signature));
}

}  // namespace braid::registry
