// What a client may ask for. Plain values, made by the composition root.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace braid::net::access {

// 0 in any of these: no limit.
struct Limits {
  std::uint32_t requests_per_minute = 0;
  std::uint32_t tokens_per_minute = 0;  // of prompts and answers together
  std::uint32_t concurrent_requests = 0;
};

struct Rules {
  Limits limits;
  std::int32_t priority = 0;          // of requests that name none; as in braid::Request, lower first
  std::int32_t best_priority = -100;  // the lowest that a request may name
  bool is_administrator = false;      // may call what changes the server
  std::string cache_salt;             // clients of different salts share no cached prefix; empty: that of those without one
};

// SHA-256 of a key. The key itself is kept nowhere.
using Digest = std::array<unsigned char, 32>;
Digest digest_of(std::string_view key);

struct ApiKey {
  std::string name;  // for logs; not a secret
  Digest digest{};
  Rules rules;
};

}  // namespace braid::net::access
