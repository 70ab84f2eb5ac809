// What can be set about the HTTP side.
#pragma once

#include "braid/model_registry.h"
#include "braid/result.h"
#include "net/access/rules.h"
#include "net/log/log_tail.h"
#include "net/log/request_log.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

namespace braid::net {

class Changes;

struct TcpAddress {
  std::string host = "127.0.0.1";  // an address or a name; a name must resolve to one of this machine's addresses
  std::uint16_t port = 8000;       // 0 picks a free one
};

// What a request may be for.
enum class WorkClass : std::uint8_t {
  kGeneration,
  kEmbedding,   // vectors and scores of texts
  kPrediction,  // of small networks
};

// How long a request may take, from its end. 0: for ever.
struct WaitLimits {
  std::chrono::milliseconds queue{0};  // to its first step
  std::chrono::milliseconds first_token{0};
  std::chrono::milliseconds total{0};  // to the end of the answer
};

// Those of a class of its own; below 0: as of a generation.
struct ClassTimeouts {
  std::chrono::milliseconds queue{-1};
  std::chrono::milliseconds total{-1};
};

inline constexpr char kNoToken[] = "off";  // for ServerOptions::unix_token

// What a second reading of options and files has found.
struct Reloaded {
  std::size_t api_keys = 0;
  std::vector<std::string> changed = {};  // options that say something else and hold from now on
  std::vector<std::string> waiting = {};  // the same, but they wait for a restart
};

struct ServerOptions {
  std::vector<TcpAddress> listen = {TcpAddress()};
  int backlog = 4096;

  std::string unix_socket;  // path; empty: none
  unsigned unix_mode = 0600;
  std::vector<uid_t> unix_users;  // who may connect there besides this process's own user
  std::string unix_token;         // file with what requests there must show; empty: the path and .token

  std::string tls_certificate;  // PEM file for all TCP addresses; empty: plain HTTP
  std::string tls_key;

  // A peer that is silent for so long while something is to be sent to it, or while its kernel is asked every tcp_keepalive, is gone.
  // It also bounds how long a client may take nothing. 0: never.
  std::chrono::milliseconds tcp_user_timeout{60'000};
  std::chrono::milliseconds tcp_keepalive{15'000};

  std::size_t max_header_bytes = std::size_t{64} << 10;  // more is answered with 431
  std::size_t max_body_bytes = std::size_t{32} << 20;    // more is answered with 413

  // Of an answer, what may wait for one client that does not read: so much composed here, and as much in the system's send buffer
  // (SO_SNDBUF, of TCP), which counts its own overhead besides. Then its sequences stall.
  std::size_t client_buffer_bytes = std::size_t{64} << 10;

  // From the first byte of a request to the end of its headers; also from the connection to the first request's first byte.
  std::chrono::milliseconds header_timeout{30'000};
  std::chrono::milliseconds body_timeout{60'000};    // without any progress of the body
  std::chrono::milliseconds idle_timeout{75'000};    // between two requests of one connection
  std::chrono::milliseconds write_timeout{60'000};   // a client that takes nothing for so long is dropped
  std::chrono::milliseconds linger_timeout{2'000};   // for a client to read the answer to a request it has not finished sending
  std::chrono::milliseconds upload_timeout{30'000};  // for one that goes on sending a body that was refused, as most do before they read
  std::chrono::milliseconds ping_interval{15'000};   // `: ping` comments in streams

  // Of a generation, from the end of its request. 0: none.
  std::chrono::milliseconds queue_timeout{0};  // to its first step
  std::chrono::milliseconds first_token_timeout{0};
  std::chrono::milliseconds request_timeout{0};  // to the end of the answer
  ClassTimeouts embedding_timeouts;
  ClassTimeouts prediction_timeouts;

  WaitLimits limits_of(WorkClass work) const {
    if (work == WorkClass::kGeneration) return {queue_timeout, first_token_timeout, request_timeout};
    const ClassTimeouts& own = work == WorkClass::kEmbedding ? embedding_timeouts : prediction_timeouts;
    const auto chosen = [](std::chrono::milliseconds time, std::chrono::milliseconds otherwise) {
      return time.count() < 0 ? otherwise : time;
    };
    return {chosen(own.queue, queue_timeout), std::chrono::milliseconds(0), chosen(own.total, request_timeout)};
  }

  // Resolution of all of the above: one shared timer, which runs only while connections are open.
  std::chrono::milliseconds tick{1'000};

  std::string version;  // what GET /version says

  bool metrics = true;            // GET /metrics and /v1/metrics
  bool vllm_metrics = false;      // also under vLLM's names
  bool llamacpp_metrics = false;  // also under llama-server's

  // Larger bodies are parsed, rendered and tokenised on the codec worker instead of the loop.
  std::size_t max_inline_body_bytes = std::size_t{16} << 10;
  std::size_t max_codec_jobs = 256;  // such bodies in work or waiting for it; more are answered with 429

  std::vector<access::ApiKey> api_keys;   // none: everybody is let in, as one anonymous client
  access::Rules anonymous;                // of that client
  bool open_metrics = false;              // GET /metrics needs no key
  std::vector<std::string> cors_origins;  // of web pages that may read answers; "localhost": this machine's; "*": all

  // Folders below which requests of an administrator may name adapters to be loaded; none: they may not.
  std::vector<std::string> adapter_dirs;
  // Likewise newer weights.
  std::vector<std::string> weights_dirs;

  // The file at an address by http or https, for images that requests name so; blocks, on any thread. kInvalidArgument: it may not be asked,
  // or gave nothing within the limits. Empty: no images are fetched.
  std::function<Result<std::string>(const std::string& url)> fetch_image;

  // For POST /reload: reads options, keys and certificates again. What cannot be read changes nothing and is an error. Empty: the route
  // answers 404.
  std::function<Result<Reloaded>()> reload;

  // Of adapters and weights, which other servers are to have as well (--peers); null: there are no others.
  std::shared_ptr<Changes> changes = nullptr;

  // Of the models that can be listed, made, pulled and pushed; null: none.
  std::shared_ptr<ModelRegistry> registry = nullptr;

  RequestLogOptions log;
  std::shared_ptr<const LogTail> log_tail = nullptr;  // what GET /v1/admin/log shows; null: it answers 404
};

}  // namespace braid::net
