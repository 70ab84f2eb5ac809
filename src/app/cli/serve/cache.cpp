#include "app/cli/serve/groups.h"
#include "app/option_types.h"
#include "store/redis/address.h"

#include <utility>

namespace braid::app {
namespace {

// The sentence does not repeat the text, which may have a password.
store::RedisAddress read_url(const std::string& url) {
  Result<store::RedisAddress> address = store::parse_redis_url(url);
  if (!address) throw CLI::ValidationError("--kv-redis", address.error().message);
  return std::move(*address);
}

}  // namespace

void add_cache_options(CLI::App& app, ServeOptions& options) {
  app.add_option_function<std::string>(
         "--prefix-cache", [&options](const std::string& state) { options.batch.prefix_cache = state == "on"; },
         "Requests that begin alike share what has been computed: on or off")
      ->default_str("on")
      ->check(CLI::IsMember({"on", "off"}));
  app.add_option("--kv-disk", options.disk.directory, "Folder where blocks of the prefix cache go on living; none if not given");
  add_size(app, "--kv-disk-limit", options.disk.limit, "Most bytes that the folder may take");
  add_duration(app, "--kv-disk-ttl", options.disk.ttl, "Age at which a block on disk is no longer used");
  app.add_option_function<std::string>(
         "--kv-disk-read", [&options](const std::string& when) { options.disk.always = when == "always"; },
         "Whether a prefix is read from disk also when computing it has been faster lately: auto (no) or always")
      ->default_str("auto")
      ->check(CLI::IsMember({"auto", "always"}));
  app.add_option_function<std::string>(
         "--kv-disk-write", [&options](const std::string& when) { options.disk.write_through = when == "through"; },
         "When blocks are written: evict (they leave the pool) or through (they are full), which is the default with --kv-redis")
      ->default_str("evict")
      ->check(CLI::IsMember({"evict", "through"}));
  app.add_option_function<std::string>(
         "--kv-redis", [&options](const std::string& url) { options.shared_cache.redis = read_url(url); },
         "Redis or Valkey through which servers share the prefix cache: redis://[:PASSWORD@]HOST[:PORT][/DATABASE] or unix:///PATH")
      ->type_name("URL");
  add_timeout(app, "--kv-redis-timeout", options.shared_cache.timeout, "How long an answer of it is waited for");
  add_duration(app, "--kv-redis-ttl", options.shared_cache.ttl, "After which it forgets a block that nobody has written again");
  app.add_option("--kv-redis-prefix", options.shared_cache.key_prefix, "What its keys begin with")->capture_default_str();
  app.add_flag(
      "--kv-verify", options.batch.kv_verify,
      "Compute what the cache holds and compare: the server aborts at the first difference. For finding faults; nothing is faster");
}

std::string cache_fault(const ServeOptions& options) {
  if (options.batch.prefix_cache) return "";
  if (!options.disk.directory.empty()) return "--kv-disk contradicts --prefix-cache off";
  return options.shared_cache.redis ? "--kv-redis contradicts --prefix-cache off" : "";
}

}  // namespace braid::app
