#include "app/cache_tiers.h"

#include "app/disk_cache.h"
#include "app/served_models.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <spdlog/spdlog.h>
#include <utility>

namespace braid::app {
namespace {

Result<std::unique_ptr<store::RedisStore>> open_redis(const SharedCacheOptions& options, const LoadedModel& loaded,
                                                      boost::asio::io_context& loop, store::BufferPool buffers) {
  store::RedisOptions redis;
  redis.address = *options.redis;
  redis.timeout = options.timeout;
  redis.ttl = std::max(std::chrono::seconds(1), std::chrono::duration_cast<std::chrono::seconds>(options.ttl));
  redis.key_prefix = options.key_prefix;
  redis.identity = loaded.kv_identity;
  redis.payload_bytes = loaded.language_model->saved_bytes();
  spdlog::info("shared cache: blocks go to the Redis at {}", redis.address.name());
  return store::RedisStore::open(std::move(redis), std::move(buffers),
                                 [&loop](std::function<void()> call) { boost::asio::post(loop, std::move(call)); });
}

}  // namespace

bool wants_tiers(const ServeOptions& options) { return !options.disk.directory.empty() || options.shared_cache.redis; }

bool writes_through(const ServeOptions& options) { return options.disk.write_through.value_or(options.shared_cache.redis.has_value()); }

Result<CacheTiers> open_tiers(const ServeOptions& options, const LoadedModel& loaded, boost::asio::io_context& loop,
                              std::vector<net::FileDescriptor>& predecessors_locks) {
  CacheTiers tiers;
  if (const DiskOptions disk = disk_options_of(options, loaded.id); !disk.directory.empty()) {
    auto opened = open_disk_cache(disk, loaded, loop, predecessors_locks);
    if (!opened) return opened.error();
    tiers.disk = std::move(*opened);
  }
  if (!options.shared_cache.redis) return tiers;
  if (restores_nothing(loaded.language_model->record_groups())) {
    spdlog::warn("going on without a shared cache: {} has recurrent layers and windows, with which nothing would be found there again",
                 loaded.id);
    return tiers;
  }
  auto redis = open_redis(options.shared_cache, loaded, loop, tiers.disk ? tiers.disk->buffers() : record_buffers(loaded));
  if (!redis) return redis.error();
  tiers.redis = std::move(*redis);
  if (tiers.disk) tiers.both = std::make_unique<store::LayeredStore>(*tiers.disk, *tiers.redis);
  return tiers;
}

}  // namespace braid::app
