#include "app/models/data_folder.h"

#include "app/environment.h"

#include <fmt/format.h>
#include <utility>

namespace braid::app {
namespace {

constexpr std::size_t kMostAddressBytes = 4096;

}  // namespace

std::string data_folder(const std::string& asked) {
  if (!asked.empty()) return asked;
  if (const std::string data = environment_variable("XDG_DATA_HOME"); data.starts_with('/')) return data + "/braid";
  if (const std::string home = environment_variable("HOME"); home.starts_with('/')) return home + "/.local/share/braid";
  return "";
}

std::string key_file(const std::string& folder) { return folder.empty() ? "" : folder + "/id_ed25519"; }

std::optional<std::string> server_of(const std::string& folder) {
  const std::string path = folder + "/server";
  const Result<registry::OpenFile> file = registry::OpenFile::read(path);
  if (!file || file->try_lock()) return std::nullopt;
  const Result<std::string> address = registry::read_small_file(path, kMostAddressBytes);
  return address && !address->empty() ? std::optional(*address) : std::nullopt;
}

Result<ServerNote> ServerNote::leave(const std::string& folder, const std::string& address) {
  Result<registry::OpenFile> file = registry::OpenFile::read_write(folder + "/server");
  if (!file) return file.error();
  if (!file->try_lock()) return Error{ErrorCode::kIo, fmt::format("another server has {} open", folder), ""};
  for (const Result<void>& done : {file->resize(0), file->write_at(address, 0)})
    if (!done) return done.error();
  return ServerNote(std::move(*file));
}

std::optional<ServerNote> leave_note(const DataOptions& options, const std::vector<std::string>& addresses) {
  for (const std::string& address : addresses) {
    if (!address.starts_with("http")) continue;
    Result<ServerNote> note = ServerNote::leave(data_folder(options.folder), address);
    return note ? std::optional(std::move(*note)) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace braid::app
