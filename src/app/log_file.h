// The file of --log-file: another one of the same name takes its place when the old one has been moved away.
#pragma once

#include "braid/result.h"
#include "net/http/file_descriptor.h"

#include <string>
#include <utility>

namespace braid::app {

class LogFile {
 public:
  // Made if there is none, for this user and to be read by its group; what is there already stays.
  static Result<LogFile> open(std::string path);

  // Opens the path again, under the same number, whoever writes to it meanwhile. On an error the file of before goes on.
  Result<void> reopen() const;

  int number() const { return file_.get(); }

 private:
  LogFile(std::string path, net::FileDescriptor file) : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  net::FileDescriptor file_;
};

}  // namespace braid::app
