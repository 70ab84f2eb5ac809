// Where lines about requests go.
#pragma once

#include "net/log/line.h"
#include "net/log/trace.h"
#include "net/log/trusted_proxies.h"

#include <memory>

namespace spdlog {
class logger;
}

namespace braid::net {

struct RequestLogOptions {
  std::shared_ptr<spdlog::logger> logger;  // takes LogLine::text(); null: spdlog's default one
  LogFormat format = LogFormat::kText;
  bool access = false;                          // a line for every request
  TrustedProxies proxies = {};                  // whose X-Forwarded-For says in that line who the client is
  std::shared_ptr<TraceSink> traces = nullptr;  // of generations; null: none
};

}  // namespace braid::net
