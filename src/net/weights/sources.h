// Where the tensors of a request come from: its body, a file below a folder that the server was started with, or shared memory.
#pragma once

#include "braid/result.h"
#include "braid/weights.h"
#include "net/weights/members.h"

#include <span>
#include <string>
#include <string_view>

namespace braid::net::weights {

// Folders below which an administrator's requests may name files, and the option that names them.
struct Folders {
  std::span<const std::string> paths;
  std::string_view option;
  bool is_shared = false;  // other servers (--peers) are to have the same: this machine's memory is then no source
};

// kForbidden: it lies in none of them, links followed; relative ones are looked for in the first one.
Result<std::string> path_in(const Folders& folders, const std::string& asked, const char* field);

struct Body {
  Members members;
  WeightSource source;  // its path is one that may be read
};

// What `mode` says is to become of requests that run.
UpdateMode mode_of(Members& members);

// An object with `path` or `shared_memory`, and if wanted `partial` and `checksum`; or a safetensors file, whose metadata have what the object
// would. A file moves into the source.
Result<Body> read_body(std::string& body, const Folders& folders);

}  // namespace braid::net::weights
