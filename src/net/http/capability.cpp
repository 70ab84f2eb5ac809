#include "net/http/capability.h"

#include "net/http/file_descriptor.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <sys/random.h>
#include <unistd.h>

namespace braid::net::http {
namespace {

constexpr std::size_t kTokenBytes = 32;
constexpr std::size_t kMaxLine = 4096;

Error unusable(const std::string& file, std::string_view reason) {
  return Error{ErrorCode::kIo, fmt::format("cannot use the token in {}: {}", file, reason), ""};
}

Result<std::string> create_token(const std::string& file) {
  std::array<std::uint8_t, kTokenBytes> secret{};
  if (::getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size())) return unusable(file, std::strerror(errno));
  std::string token;
  for (const std::uint8_t byte : secret) token += fmt::format("{:02x}", byte);
  const FileDescriptor created(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (created.get() < 0) return unusable(file, std::strerror(errno));
  const std::string line = token + "\n";
  const ssize_t written = ::write(created.get(), line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size())) return token;
  Error error = unusable(file, written < 0 ? std::strerror(errno) : "no space is left for it");
  ::unlink(file.c_str());  // half a token would be refused at the next start, too
  return error;
}

bool may_stand_in_header(char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7F; }

}  // namespace

bool Capability::matches(std::string_view token) const {
  if (token.size() != token_.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < token.size(); ++i)
    difference |= static_cast<unsigned>(static_cast<unsigned char>(token[i]) ^ static_cast<unsigned char>(token_[i]));
  return difference == 0;
}

Result<std::shared_ptr<const Capability>> load_capability(const std::string& file) {
  std::ifstream in(file);
  if (!in && ::access(file.c_str(), F_OK) != 0) {
    Result<std::string> token = create_token(file);
    if (!token) return token.error();
    return std::make_shared<const Capability>(std::move(*token));
  }
  std::array<char, kMaxLine + 1> line{};
  if (!in || (!in.getline(line.data(), line.size()) && in.gcount() == 0)) return unusable(file, "it cannot be read, or is empty");
  if (!in) return unusable(file, fmt::format("its first line is longer than {} characters", kMaxLine));
  std::string token(line.data(), static_cast<std::size_t>(in.gcount()) - (in.eof() ? 0 : 1));  // its end counts
  while (!token.empty() && (token.back() == '\r' || token.back() == ' ')) token.pop_back();
  if (token.size() < 16) return unusable(file, "it is shorter than 16 characters");
  if (!std::all_of(token.begin(), token.end(), may_stand_in_header))
    return unusable(file, "it has control characters, which no header can show");
  return std::make_shared<const Capability>(std::move(token));
}

}  // namespace braid::net::http
