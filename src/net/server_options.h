// What can be set about the HTTP side.
#pragma once

#include <net/access/rules.h>
#include <net/log/line.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace spdlog {
class logger;
}

namespace braid::net {

struct RequestLogOptions {
  std::shared_ptr<spdlog::logger> logger;  // takes LogLine::text(); null: spdlog's default one
  LogFormat format = LogFormat::kText;
  bool access = false;                     // a line for every request
};

struct ServerOptions {
  std::string host = "127.0.0.1";  // an address or a name; a name must resolve to one of this machine's addresses
  std::uint16_t port = 8000;       // 0 picks a free one
  int backlog = 4096;

  std::size_t max_header_bytes = std::size_t{64} << 10;  // more is answered with 431
  std::size_t max_body_bytes = std::size_t{32} << 20;    // more is answered with 413

  std::chrono::milliseconds header_timeout{30'000};  // from the first byte of a request to the end of its headers
  std::chrono::milliseconds body_timeout{60'000};    // without any progress of the body
  std::chrono::milliseconds idle_timeout{75'000};    // between two requests of one connection
  std::chrono::milliseconds write_timeout{60'000};   // a client that takes nothing for so long is dropped
  std::chrono::milliseconds linger_timeout{2'000};   // for a client to read the answer to a request it has not finished sending
  std::chrono::milliseconds ping_interval{15'000};   // `: ping` comments in streams

  // Resolution of all of the above: one shared timer, which runs only while connections are open.
  std::chrono::milliseconds tick{1'000};

  bool metrics = true;  // GET /metrics and /v1/metrics

  // Larger bodies are parsed, rendered and tokenised on the codec worker instead of the loop.
  std::size_t max_inline_body_bytes = std::size_t{16} << 10;
  std::size_t max_codec_jobs = 256;  // such bodies in work or waiting for it; more are answered with 429

  std::vector<access::ApiKey> api_keys;   // none: everybody is let in, as one anonymous client
  access::Rules anonymous;                // of that client
  bool open_metrics = false;              // GET /metrics needs no key
  std::vector<std::string> cors_origins;  // of web pages that may read answers; "*": all

  RequestLogOptions log;
};

}  // namespace braid::net
