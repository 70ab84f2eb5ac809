// Tells when files below some folders have come, gone or been written to their end (inotify).
#pragma once

#include "braid/result.h"

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace braid::registry {

// A thread of its own, which sleeps until something happens.
class FolderWatch {
 public:
  // `changed` is called on that thread, once for what happened together. A folder that is not there is not watched. kIo where the system
  // lets nobody watch any more.
  static Result<std::unique_ptr<FolderWatch>> start(std::vector<std::string> folders, std::function<void()> changed);
  ~FolderWatch();
  FolderWatch(const FolderWatch&) = delete;
  FolderWatch& operator=(const FolderWatch&) = delete;

 private:
  FolderWatch(int events, int stop, std::vector<std::string> folders, std::function<void()> changed);
  void watch_all() const;
  void run() const;

  int events_;
  int stop_;
  std::vector<std::string> folders_;
  std::function<void()> changed_;
  std::thread thread_;
};

}  // namespace braid::registry
