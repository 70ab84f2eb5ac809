#include "net/admin/cache_stats.h"

#include "net/http/error_response.h"
#include "net/http/query.h"
#include "net/service/service.h"

#include <fmt/format.h>
#include <iterator>
#include <span>
#include <string>

namespace braid::net::admin {
namespace {

double mean_ms(double seconds, std::uint64_t count) { return count > 0 ? seconds * 1e3 / static_cast<double>(count) : 0.0; }

void append_disk(std::string& out, const DiskCacheStats& disk) {
  fmt::format_to(std::back_inserter(out),
                 R"({{"blocks":{},"bytes":{},"files":{},"reads":{},"read_bytes":{},"read_errors":{},"mean_read_ms":{:.3f},)", disk.records,
                 disk.bytes, disk.segments, disk.reads, disk.read_bytes, disk.read_errors, mean_ms(disk.read_seconds, disk.reads));
  fmt::format_to(std::back_inserter(out),
                 R"("writes":{},"write_bytes":{},"write_errors":{},"writes_dropped":{},"mean_write_ms":{:.3f},"pruned_blocks":{}}})",
                 disk.writes, disk.write_bytes, disk.write_errors, disk.writes_dropped, mean_ms(disk.write_seconds, disk.writes),
                 disk.pruned);
}

void append_redis(std::string& out, const RedisCacheStats& redis) {
  fmt::format_to(std::back_inserter(out),
                 R"({{"up":{},"failures":{},"lookups":{},"lookup_errors":{},"mean_lookup_ms":{:.3f},"reads":{},"read_bytes":{},)"
                 R"("read_misses":{},"read_errors":{},"mean_read_ms":{:.3f},)",
                 redis.is_up, redis.failures, redis.lookups, redis.lookup_errors, mean_ms(redis.lookup_seconds, redis.lookups), redis.reads,
                 redis.read_bytes, redis.read_misses, redis.read_errors, mean_ms(redis.read_seconds, redis.reads));
  fmt::format_to(std::back_inserter(out),
                 R"("writes":{},"write_bytes":{},"writes_known":{},"write_errors":{},"writes_dropped":{},"mean_write_ms":{:.3f}}})",
                 redis.writes, redis.write_bytes, redis.writes_known, redis.write_errors, redis.writes_dropped,
                 mean_ms(redis.write_seconds, redis.writes + redis.writes_known));
}

}  // namespace

http::Response cache_stats(const ServiceStatus& status, std::string_view query) {
  if (status.models.empty()) return http::error_response({ErrorCode::kModelNotLoaded, "no model is loaded", ""});
  const Result<const ServedModel*> model = find_model(status.models, http::query_value(query, "model").value_or(std::string()));
  if (!model) return http::error_response(model.error());
  const EngineStats stats = (*model)->engine->stats();
  http::Response response;
  fmt::format_to(
      std::back_inserter(response.body),
      R"({{"blocks":{{"total":{},"in_use":{},"cached":{},"empty":{}}},"in_use_by_group":[{}],"states":{{"cached":{},"blocks":{},"most_blocks":{},"dropped":{}}},)"
      R"("fragmentation":{:.4f},)"
      R"("tokens":{{"saved":{},"ram_hits":{},"disk_hits":{},"misses":{}}},"evictions":{},"verified_blocks":{},"disk":)",
      stats.blocks_total, stats.blocks_total - stats.blocks_free, stats.blocks_cached, stats.blocks_free - stats.blocks_cached,
      fmt::join(std::span(stats.group_blocks).first(stats.groups), ","), stats.states_cached, stats.state_blocks_cached,
      stats.state_blocks_most, stats.states_dropped, stats.kv_fragmentation, stats.cache_hit_tokens,
      stats.cache_hit_tokens - stats.cache_disk_hit_tokens, stats.cache_disk_hit_tokens, stats.cache_miss_tokens, stats.cache_evictions,
      stats.cache_verified_blocks);
  if (stats.disk) {
    append_disk(response.body, *stats.disk);
  } else {
    response.body += "null";
  }
  response.body += R"(,"redis":)";
  if (stats.redis) {
    append_redis(response.body, *stats.redis);
  } else {
    response.body += "null";
  }
  response.body += "}";
  return response;
}

}  // namespace braid::net::admin
