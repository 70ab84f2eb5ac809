// What a server's own metrics say of its process.
#pragma once

#include "app/bench/summary.h"
#include "app/bench/target.h"

#include <boost/asio/ip/tcp.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace braid::bench {

// Of an exposition in Prometheus' form: braid's names, or the usual ones. nullopt: it lacks processor time or memory.
std::optional<ServerFigures> parse_figures(std::string_view metrics);

// GET /metrics, on a connection of its own; returns when it is read. nullopt: it cannot be had.
std::optional<ServerFigures> read_figures(const std::vector<boost::asio::ip::tcp::endpoint>& endpoints, const Target& target,
                                          const std::string& api_key);

}  // namespace braid::bench
