// The file of --pid-file, for those who send signals.
#pragma once

#include "braid/result.h"

#include <string>
#include <utility>

namespace braid::app {

// Holds this process's number and a line's end while the object lives. A successor (--takeover) puts its own file in the same place.
class PidFile {
 public:
  static Result<PidFile> write(std::string path);
  ~PidFile();  // takes the file away if it is still this process's
  PidFile(PidFile&& other) noexcept;
  PidFile& operator=(PidFile&&) = delete;

 private:
  explicit PidFile(std::string path) : path_(std::move(path)) {}

  std::string path_;  // empty: moved from
};

}  // namespace braid::app
