#include "app/disk_cache.h"

#include "app/units.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <fcntl.h>
#include <functional>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <utility>

namespace braid::app {

namespace {

std::size_t least_buffers(const model::KvGroups& groups) {
  return std::max<std::size_t>(4, 2 * static_cast<std::size_t>(groups.count() + groups.states.blocks()));
}

store::StoreOptions store_options(const DiskOptions& options, const LoadedModel& loaded) {
  store::StoreOptions store;
  store.directory = options.directory;
  store.limit_bytes = options.limit;
  store.ttl = std::chrono::duration_cast<std::chrono::seconds>(options.ttl);
  store.identity = loaded.kv_identity;
  store.payload_bytes = loaded.language_model->saved_bytes();
  store.most_tokens = loaded.kv.context;
  store.least_buffers = least_buffers(loaded.language_model->record_groups());
  return store;
}

// The one among `locks` that is this folder's, or none.
net::FileDescriptor take_lock_of(const std::string& directory, std::vector<net::FileDescriptor>& locks) {
  struct stat file {};
  if (::stat((directory + "/lock").c_str(), &file) != 0) return net::FileDescriptor();
  const auto found = std::ranges::find_if(locks, [&file](const net::FileDescriptor& lock) {
    struct stat other {};
    return ::fstat(lock.get(), &other) == 0 && other.st_dev == file.st_dev && other.st_ino == file.st_ino;
  });
  return found != locks.end() ? std::move(*found) : net::FileDescriptor();
}

}  // namespace

bool restores_nothing(const model::KvGroups& groups) {
  const auto has_window = [](const model::KvGroup& group) { return group.visibility.window > 0; };
  return groups.states.blocks() > 0 && std::ranges::any_of(groups.groups, has_window);
}

std::size_t disk_buffer_bytes(const model::LanguageModel& model) {
  return std::max(store::StoreOptions().buffer_memory, least_buffers(model.kv_groups()) * model.saved_bytes());
}

store::BufferPool record_buffers(const LoadedModel& loaded) { return store::record_buffers(store_options({}, loaded)); }

Result<std::unique_ptr<store::BlockStore>> open_store(const DiskOptions& options, const LoadedModel& loaded, boost::asio::io_context& loop,
                                                      net::FileDescriptor predecessors_lock) {
  const store::SharedFile lock =
      predecessors_lock.get() < 0 ? nullptr : std::make_shared<const store::OpenFile>(predecessors_lock.release());
  auto opened = store::BlockStore::open(
      store_options(options, loaded), store::make_io(), [&loop](std::function<void()> call) { boost::asio::post(loop, std::move(call)); },
      lock);
  if (!opened && opened.error().code == ErrorCode::kInvalidArgument) return invalid_argument("--kv-disk-limit: " + opened.error().message);
  return opened;
}

Result<std::unique_ptr<store::BlockStore>> open_disk_cache(const DiskOptions& options, const LoadedModel& loaded,
                                                           boost::asio::io_context& loop,
                                                           std::vector<net::FileDescriptor>& predecessors_locks) {
  if (restores_nothing(loaded.language_model->record_groups())) {
    spdlog::warn("going on without a disk cache: {} has recurrent layers and windows, with which nothing would be found there again",
                 loaded.id);
    return std::unique_ptr<store::BlockStore>();
  }
  auto opened = open_store(options, loaded, loop, take_lock_of(options.directory, predecessors_locks));
  if (opened && (*opened)->awaits_predecessor()) {
    spdlog::info("disk cache: {} is the other server's until that has ended", options.directory);
    return opened;
  }
  if (opened) {
    const DiskCacheStats stats = (*opened)->stats();
    spdlog::info("disk cache: {} blocks, {} of at most {} in {}, by {}", stats.records, format_size(stats.bytes),
                 format_size(options.limit), options.directory, (*opened)->io_name());
    return opened;
  }
  if (opened.error().code == ErrorCode::kInvalidArgument) return opened.error();
  spdlog::warn("going on without a disk cache: {}", opened.error().message);
  return std::unique_ptr<store::BlockStore>();
}

net::FileDescriptor copy_lock(const store::BlockStore* store) {
  const store::SharedFile lock = store != nullptr ? store->lock() : nullptr;
  return net::FileDescriptor(lock != nullptr ? ::fcntl(lock->descriptor(), F_DUPFD_CLOEXEC, 0) : -1);
}

}  // namespace braid::app
