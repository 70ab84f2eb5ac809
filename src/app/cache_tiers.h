// Where a model's blocks go below RAM: the folder of --kv-disk, the Redis of --kv-redis, both or neither.
#pragma once

#include "app/options.h"
#include "braid/result.h"
#include "net/http/file_descriptor.h"
#include "store/block_store.h"
#include "store/layered_store.h"
#include "store/redis/redis_store.h"

#include <boost/asio/io_context.hpp>
#include <memory>
#include <vector>

namespace braid::app {

struct LoadedModel;

struct CacheTiers {
  std::unique_ptr<store::BlockStore> disk;
  std::unique_ptr<store::RedisStore> redis;
  std::unique_ptr<store::LayeredStore> both;  // where there are both, which it refers to

  // Null: there is neither.
  store::RecordStore* store() const {
    if (both) return both.get();
    return redis ? static_cast<store::RecordStore*>(redis.get()) : disk.get();
  }
};

// Whether models want any, and know what their blocks are told apart by.
bool wants_tiers(const ServeOptions& options);

// Blocks are written when they are full: what others are to find has to be there before it is needed.
bool writes_through(const ServeOptions& options);

// For a loaded model that has its kv_identity; they run their calls on the loop. As open_disk_cache() for the disk; a Redis may come later, and
// is not asked before it is needed. Any thread.
Result<CacheTiers> open_tiers(const ServeOptions& options, const LoadedModel& loaded, boost::asio::io_context& loop,
                              std::vector<net::FileDescriptor>& predecessors_locks);

}  // namespace braid::app
