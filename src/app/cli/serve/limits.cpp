#include "app/cli/serve/groups.h"
#include "app/option_types.h"

namespace braid::app {

void add_limit_options(CLI::App& app, net::ServerOptions& options) {
  add_bytes(app, "--max-header-bytes", options.max_header_bytes, 1 << 10, 1 << 24,
            "Longest header of a request; more is answered with 431");
  add_bytes(app, "--max-body-bytes", options.max_body_bytes, 1 << 10, 1 << 30, "Longest body of a request; more is answered with 413");
  add_bytes(app, "--client-buffer", options.client_buffer_bytes, 4 << 10, 64 << 20,
            "What may wait for a client that does not read, here and again in the system's send buffer; then its sequences stall");
  add_timeout(app, "--header-timeout", options.header_timeout,
              "For a request's header to arrive, and for a connection's first request to begin");
  add_timeout(app, "--body-timeout", options.body_timeout, "Without any progress of a request's body");
  add_timeout(app, "--idle-timeout", options.idle_timeout, "Between two requests of one connection");
  add_timeout(app, "--write-timeout", options.write_timeout, "A client that takes nothing for so long is dropped");
  add_duration(app, "--queue-timeout", options.queue_timeout,
               "A request that waited so long for its first step is answered with 429; 0s: never");
  add_duration(app, "--first-token-timeout", options.first_token_timeout,
               "From a request to its first token, or it fails with 504; 0s: none");
  add_duration(app, "--request-timeout", options.request_timeout,
               "From a request to the end of its answer, or it fails with 504; 0s: none");
  const auto add_own = [&app](const std::string& name, std::chrono::milliseconds& target, const std::string& help) {
    add_duration(app, name, target, help)->default_str("as of generations");
  };
  add_own("--embeddings-queue-timeout", options.embedding_timeouts.queue, "--queue-timeout of requests for vectors and scores; 0s: never");
  add_own("--embeddings-timeout", options.embedding_timeouts.total, "--request-timeout of requests for vectors and scores; 0s: none");
  add_own("--predict-queue-timeout", options.prediction_timeouts.queue, "--queue-timeout of requests to small networks; 0s: never");
  add_own("--predict-timeout", options.prediction_timeouts.total, "--request-timeout of requests to small networks; 0s: none");
  add_duration(app, "--tcp-user-timeout", options.tcp_user_timeout,
               "A peer that acknowledges nothing for so long is gone; 0s: the system's");
  add_duration(app, "--tcp-keepalive", options.tcp_keepalive, "How often a peer that says nothing is asked whether it is there; 0s: never");
}

}  // namespace braid::app
