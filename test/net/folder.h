// A folder that goes with the test; short, since a Unix socket's path is.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace braid::test {

class Folder {
 public:
  Folder() { path_ = ::mkdtemp(path_.data()); }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_ = "/tmp/braid-net-XXXXXX";
};

}  // namespace braid::test
