// Where a Redis answers, and who we are to it.
#pragma once

#include "braid/result.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace braid::store {

struct RedisAddress {
  std::string host;
  std::uint16_t port = 6379;
  std::string socket;  // path of a Unix socket; empty: host and port
  std::string user;    // empty: the default one
  std::string password;
  std::uint32_t database = 0;

  std::string name() const;  // for people: without the password
};

// redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE] or unix://[[USER]:PASSWORD@]/PATH[?db=DATABASE], where user, password and path may have
// %41. What is wrong is said without repeating the text, which may have a password.
Result<RedisAddress> parse_redis_url(std::string_view url);

}  // namespace braid::store
