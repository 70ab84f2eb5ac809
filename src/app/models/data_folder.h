// The folder in which everything of this machine's models lies, and which server has it open.
#pragma once

#include "app/options.h"
#include "braid/result.h"
#include "registry/durable_file.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace braid::app {

// What is said by --data-dir or BRAID_DATA_DIR, or else $XDG_DATA_HOME/braid, or ~/.local/share/braid; empty where none of them is known.
std::string data_folder(const std::string& asked);

// Where a registry's key to this machine is, or will be; empty where there is no folder.
std::string key_file(const std::string& folder);

// The address of the server that has the folder open; nullopt: there is none.
std::optional<std::string> server_of(const std::string& folder);

// While it lives, server_of() gives `address`, unless another server was first.
class ServerNote {
 public:
  static Result<ServerNote> leave(const std::string& folder, const std::string& address);

 private:
  explicit ServerNote(registry::OpenFile file) : file_(std::move(file)) {}
  registry::OpenFile file_;
};

// Of a server that listens there; nullopt where nothing can be left.
std::optional<ServerNote> leave_note(const DataOptions& options, const std::vector<std::string>& addresses);

}  // namespace braid::app
