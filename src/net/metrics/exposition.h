// GET /metrics: the counters of the HTTP side and of the engine, and the process's memory, in Prometheus's text format.
#pragma once

#include <braid/served_model.h>
#include <net/metrics/counters.h>

#include <cstddef>
#include <string>

namespace braid::net {

std::string expose(const Counters& counters, std::size_t open_connections, const ServiceStatus& status);

}  // namespace braid::net
