#include "app/serving/adapter_loading.h"

#include "model/adapters/build.h"
#include "model/adapters/read_adapter.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>
#include <openssl/sha.h>
#include <utility>

namespace braid::app {
namespace {

std::string sha256(std::span<const std::byte> bytes) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  std::string digits;
  for (const unsigned char byte : digest) digits += fmt::format("{:02x}", byte);
  return digits;
}

Result<void> check(const std::string& checksum, const files::ByteSource& source) {
  if (checksum.empty()) return {};
  std::string asked = checksum.substr(checksum.starts_with("sha256:") ? 7 : 0);
  std::ranges::transform(asked, asked.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::string found = sha256(source.bytes());
  if (found == asked) return {};
  return Error{ErrorCode::kBadFile, fmt::format("{}: its SHA-256 is {}, and {} was asked for", source.name(), found, asked), {}};
}

Result<model::StoredAdapter> read_tensors(const AdapterSource& source, const LoadedAdapter* previous, const model::AdaptedBase& base) {
  if (previous == nullptr || previous->config == nullptr)
    return Error{ErrorCode::kNotFound, "tensors alone are taken of an adapter that was loaded from a folder of PEFT", {}};
  const auto* begin = reinterpret_cast<const std::byte*>(source.tensors.data());
  auto tensors = files::owned_bytes({begin, begin + source.tensors.size()}, "the tensors of the request");
  if (const Result<void> sound = check(source.checksum, *tensors); !sound) return sound.error();
  if (source.partial) {
    auto all = model::with_newer_tensors(*previous->tensors, *tensors);
    if (!all) return all.error();
    tensors = std::move(*all);
  }
  return model::read_peft_tensors(previous->config, std::move(tensors), base);
}

Result<model::StoredAdapter> read(const AdapterSource& source, const LoadedAdapter* previous, const model::AdaptedBase& base) {
  if (source.path.empty()) return read_tensors(source, previous, base);
  Result<model::StoredAdapter> stored = model::read_adapter(source.path, base);
  if (!stored) return stored;
  if (const Result<void> sound = check(source.checksum, *stored->sources.front()); !sound) return sound.error();
  if (!source.partial) return stored;
  if (previous == nullptr || previous->config == nullptr || stored->config == nullptr)
    return Error{ErrorCode::kNotFound, "a part of an adapter is taken of one that was loaded from a folder of PEFT", {}};
  auto all = model::with_newer_tensors(*previous->tensors, *stored->sources.front());
  if (!all) return all.error();
  return model::read_peft_tensors(previous->config, std::move(*all), base);
}

}  // namespace

Result<LoadedAdapter> load_adapter(const AdapterSource& source, const LoadedAdapter* previous, const AdapterBase& base) {
  const auto refused = [](Error error) {
    if (error.code == ErrorCode::kBadFile || error.code == ErrorCode::kUnsupported) error.code = ErrorCode::kInvalidArgument;
    if (error.code == ErrorCode::kIo) error.code = ErrorCode::kNotFound;
    return error;
  };
  const Result<model::StoredAdapter> stored = read(source, previous, {base.model.shape(), base.folder});
  if (!stored) return refused(stored.error());
  auto adapter = model::build_adapter(*stored, base.model.shape(), *base.model.weights(), base.table);
  if (!adapter) return refused(adapter.error());
  return LoadedAdapter{std::move(*adapter), stored->config, stored->sources.front()};
}

}  // namespace braid::app
