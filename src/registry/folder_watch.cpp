#include "registry/folder_watch.h"

#include "registry/durable_file.h"

#include <array>
#include <cerrno>
#include <filesystem>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>
#include <utility>

namespace braid::registry {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kEvents =
    IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_DELETE_SELF | IN_CREATE | IN_ONLYDIR | IN_EXCL_UNLINK;
constexpr int kWatchDepth = 5;

}  // namespace

Result<std::unique_ptr<FolderWatch>> FolderWatch::start(std::vector<std::string> folders, std::function<void()> changed) {
  const int events = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (events < 0) return system_error("cannot watch", folders.empty() ? "folders" : folders.front());
  const int stop = ::eventfd(0, EFD_CLOEXEC);
  if (stop < 0) {
    const Error failure = system_error("cannot watch", folders.empty() ? "folders" : folders.front());
    ::close(events);
    return failure;
  }
  return std::unique_ptr<FolderWatch>(new FolderWatch(events, stop, std::move(folders), std::move(changed)));
}

FolderWatch::FolderWatch(int events, int stop, std::vector<std::string> folders, std::function<void()> changed)
    : events_(events), stop_(stop), folders_(std::move(folders)), changed_(std::move(changed)) {
  watch_all();
  thread_ = std::thread([this] { run(); });
}

FolderWatch::~FolderWatch() {
  ::eventfd_write(stop_, 1);
  thread_.join();
  ::close(events_);
  ::close(stop_);
}

// To watch a folder once more changes nothing.
void FolderWatch::watch_all() const {
  for (const std::string& folder : folders_) {
    ::inotify_add_watch(events_, folder.c_str(), kEvents);
    std::error_code ignored;
    fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, ignored);
    for (const fs::recursive_directory_iterator end; !ignored && entry != end; entry.increment(ignored)) {
      if (!entry->is_directory(ignored)) continue;
      ::inotify_add_watch(events_, entry->path().c_str(), kEvents);
      if (entry.depth() + 1 >= kWatchDepth) entry.disable_recursion_pending();
    }
  }
}

void FolderWatch::run() const {
  std::array<pollfd, 2> waits = {{{events_, POLLIN, 0}, {stop_, POLLIN, 0}}};
  alignas(inotify_event) std::array<char, 16384> events{};
  for (;;) {
    if (::poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) return;
    if (waits[1].revents != 0) return;
    if (waits[0].revents == 0) continue;
    bool any = false;
    while (::read(events_, events.data(), events.size()) > 0) any = true;
    if (!any) continue;
    watch_all();  // before anybody looks: what comes into a new folder later is told again
    changed_();
  }
}

}  // namespace braid::registry
