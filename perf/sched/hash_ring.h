// The server that nginx takes by `hash KEY consistent`, as deploy/nginx/braid-upstreams.conf has it: a ring of CRC-32 points, 160 for each
// server, and the next one in its order while a server has `max_conns` requests. perf/sched/routes.mjs holds it against nginx itself.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <zlib.h>

namespace braid::perf {

class HashRing {
 public:
  static constexpr int kPoints = 160;  // of each server
  static constexpr int kTries = 20;    // then any server will do

  // Named host:port.
  explicit HashRing(std::span<const std::string> servers) {
    for (std::uint32_t server = 0; server < servers.size(); ++server) {
      const std::string_view name = servers[server];
      const std::size_t colon = name.rfind(':');
      const std::uint32_t base = crc(crc(crc(0, name.substr(0, colon)), std::string_view("", 1)), name.substr(colon + 1));
      std::uint32_t before = 0;
      for (int i = 0; i < kPoints; ++i) {
        const std::array<char, 4> bytes{static_cast<char>(before), static_cast<char>(before >> 8U), static_cast<char>(before >> 16U),
                                        static_cast<char>(before >> 24U)};
        before = crc(base, {bytes.data(), bytes.size()});
        points_.push_back({before, server});
      }
    }
    std::ranges::stable_sort(points_, {}, &Point::hash);
    const auto same = std::ranges::unique(points_, {}, &Point::hash);
    points_.erase(same.begin(), same.end());
  }

  // The first in the order of the ring that `takes` it; -1: none of those that are asked does.
  template <class Takes>
  int find(std::string_view key, const Takes& takes) const {
    const auto first = std::ranges::lower_bound(points_, crc(0, key), {}, &Point::hash);
    auto at = static_cast<std::size_t>(first - points_.begin());
    for (int tries = 0; tries <= kTries; ++tries, ++at) {
      const std::uint32_t server = points_[at % points_.size()].server;
      if (takes(server)) return static_cast<int>(server);
    }
    return -1;
  }

 private:
  struct Point {
    std::uint32_t hash;
    std::uint32_t server;
  };
  static std::uint32_t crc(std::uint32_t before, std::string_view bytes) {
    return static_cast<std::uint32_t>(::crc32(before, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
  }

  std::vector<Point> points_;
};

}  // namespace braid::perf
