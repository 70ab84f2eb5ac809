// What administrators have changed of adapters and weights, in a folder (--peer-state): so it outlasts an end of all servers that have it.
#pragma once

#include "braid/result.h"
#include "net/service/changes.h"

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace braid::app {

// A file for each change that is still needed. Several servers may share a folder: a file's name says which change it holds, it is there
// whole or not at all, and is removed only by who knows what replaces it. For one thread at a time.
class ChangeRecord {
 public:
  // Makes the folder if need be. kIo: it cannot be made, or not be written to.
  static Result<ChangeRecord> open(std::string folder);

  // Those that were kept, the newest first. Only one at a time is in memory: each may be as long as a request's body. `take` says whether
  // there is to be another one. Of a file that holds none the log tells, and it is left alone.
  void read(const std::function<bool(net::Change)>& take);

  // These are what is needed now. What cannot be written is tried again, as long as it is needed.
  void keep(const std::vector<std::shared_ptr<const net::Change>>& needed);

 private:
  explicit ChangeRecord(std::string folder) : folder_(std::move(folder)) {}

  std::string folder_;
  std::set<std::string> kept_;  // names of files that were read or written
  net::Patience patience_;
};

}  // namespace braid::app
