#include "net/weights/sources.h"

#include "net/json/parse.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <system_error>
#include <utility>

namespace braid::net::weights {
namespace {

namespace fs = std::filesystem;

bool lies_in(const fs::path& path, const fs::path& folder) {
  const auto end = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first;
  return end == folder.end();
}

// What is read of a folder, each of which may be a link.
constexpr const char* kFilesOfFolders[] = {"adapter_config.json", "adapter_model.safetensors", "model.safetensors"};

bool lies_in_any(const fs::path& path, const Folders& folders) {
  return std::ranges::any_of(folders.paths, [&](const std::string& folder) {
    std::error_code unknown;
    const fs::path own = fs::canonical(folder, unknown);
    return !unknown && path != own && lies_in(path, own);
  });
}

// POSIX shared memory is a file of a name without slashes; links in there may be anybody's.
Result<std::string> shared_memory(const std::string& name) {
  const std::string plain = name.substr(name.starts_with('/') ? 1 : 0);
  if (plain.empty() || plain.find_first_of(std::string_view("/\0", 2)) != std::string::npos || plain == "." || plain == "..")
    return invalid_argument(fmt::format("'{}' is no name of shared memory, which has no slash but a first one", name), "shared_memory");
  std::string path = "/dev/shm/" + plain;
  std::error_code failed;
  if (fs::symlink_status(path, failed).type() != fs::file_type::regular)
    return Error{ErrorCode::kNotFound, fmt::format("there is no shared memory of the name '{}'", name), "shared_memory"};
  return path;
}

Error no_source() { return invalid_argument("the body is neither an object nor a safetensors file"); }

// Of a safetensors file what "__metadata__" says, whose values are texts.
Result<Value> metadata_of(const std::string& file) {
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  if (length == 0 || length > file.size() - sizeof length) return no_source();
  std::string header = file.substr(sizeof length, length);
  const Result<Value> document = json::parse_object(header);
  if (!document) return document.error();
  const Value* metadata = document->find("__metadata__");
  if (metadata == nullptr) return Value(ValueDict());
  if (metadata->get_if<ValueDict>() == nullptr) return invalid_argument("'__metadata__' is no object", "__metadata__");
  return *metadata;
}

// Its header is shorter than 4 GiB, so the length before that ends in zeros, which no JSON text has.
bool is_safetensors(const std::string& body) { return body.size() > 8 && body.compare(4, 4, std::string(4, '\0')) == 0; }

bool begins_as_json(const std::string& body) {
  const std::size_t first = body.find_first_not_of(" \t\r\n");
  return first == std::string::npos || body[first] == '{' || body[first] == '[';
}

}  // namespace

Result<std::string> path_in(const Folders& folders, const std::string& asked, const char* field) {
  if (folders.paths.empty())
    return Error{ErrorCode::kForbidden,
                 fmt::format("this server reads no files that requests name: it was started without {}", folders.option), field};
  if (asked.find('\0') != std::string::npos) return invalid_argument(fmt::format("'{}' has a zero byte: it is no path", field), field);
  std::error_code failed;
  const fs::path path = fs::weakly_canonical(fs::path(folders.paths.front()) / asked, failed);
  const auto refused = [&](std::string_view what) {
    return Error{ErrorCode::kForbidden, fmt::format("'{}' lies in no folder of {}", what, folders.option), field};
  };
  if (failed || !lies_in_any(path, folders)) return refused(asked);
  std::error_code none;
  if (!fs::is_directory(path, none)) return path.string();
  for (const char* file : kFilesOfFolders) {
    if (!fs::is_symlink(path / file, none)) continue;
    const fs::path target = fs::canonical(path / file, failed);  // one to nothing may be one to something soon
    if (failed || !lies_in_any(target, folders)) return refused((fs::path(asked) / file).string());
  }
  return path.string();
}

UpdateMode mode_of(Members& members) {
  const std::string name = members.text("mode", false);
  if (name == "abort") return UpdateMode::kAbort;
  if (name == "keep") return UpdateMode::kKeep;
  if (!name.empty() && name != "finish" && !members.error)
    members.error = invalid_argument(fmt::format("'mode' is '{}', expected 'finish', 'abort' or 'keep'", name), "mode");
  return UpdateMode::kFinish;
}

Result<Body> read_body(std::string& body, const Folders& folders) {
  const bool is_file = is_safetensors(body);
  if (!is_file && !begins_as_json(body)) return no_source();
  Result<Value> document = is_file ? metadata_of(body) : json::parse_object(body);
  if (!document) return document.error();
  Body read{Members(std::move(*document)), {}};
  Members& members = read.members;
  read.source.partial = members.flag("partial");
  read.source.checksum = members.text("checksum", false);
  const std::string memory = members.text("shared_memory", false);
  const std::string path = members.text("path", !is_file && !members.has("shared_memory"));
  if (members.error) return *members.error;
  if (!memory.empty() && folders.is_shared)
    return invalid_argument(
        "shared memory is this machine's alone: for the servers of --peers send the file itself, or a path that all have", "shared_memory");
  if (!path.empty() && !memory.empty()) return invalid_argument("'path' and 'shared_memory' are both there: which one?", "path");
  if (is_file) {
    if (!path.empty() || !memory.empty()) return invalid_argument("the body is a file itself: its metadata name no other", "path");
    read.source.tensors = std::move(body);
    return read;
  }
  Result<std::string> allowed = memory.empty() ? path_in(folders, path, "path") : shared_memory(memory);
  if (!allowed) return allowed.error();
  read.source.path = std::move(*allowed);
  return read;
}

}  // namespace braid::net::weights
