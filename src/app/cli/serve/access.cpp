#include "app/cli/serve/groups.h"
#include "app/option_types.h"
#include "app/peer_name.h"

#include <limits>
#include <string>

namespace braid::app {
namespace {

// scheme://host, perhaps with a port, as browsers write it in Origin.
std::string check_origin(const std::string& origin) {
  const std::size_t scheme = origin.find("://");
  const std::size_t host = scheme + 3;
  const bool fits =
      origin == "*" || origin == "localhost" ||
      (scheme != std::string::npos && scheme > 0 && host < origin.size() && origin.find_first_of("/ ,*?#", host) == std::string::npos);
  return fits ? "" : "'" + origin + "' is no origin: write https://host, https://host:port, localhost or *";
}

// A host, or all below one, or all; perhaps with a port.
std::string check_image_host(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const std::string host = text.substr(0, colon);
  const std::string port = colon == std::string::npos ? "*" : text.substr(colon + 1);
  const std::size_t begin = host.starts_with("*.") ? 2 : 0;
  const bool host_fits = host == "*" || (host.size() > begin && host.find_first_of("/ ,?#@*:", begin) == std::string::npos);
  const bool port_fits = port == "*" || (!port.empty() && port.find_first_not_of("0123456789") == std::string::npos);
  return host_fits && port_fits ? "" : "'" + text + "' is no host: write pictures.example, *.example or *, perhaps with :8443 or :*";
}

}  // namespace

void add_access_options(CLI::App& app, ServeOptions& options) {
  constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();
  app.add_option("--api-key-file", options.access.api_key_file,
                 "File of API keys, a line each: NAME KEY [SETTING=VALUE]...; read again on SIGHUP; none: everybody is let in");
  net::access::Limits& limits = options.access.limits;
  add_integer(app, "--requests-per-minute", limits.requests_per_minute, 0, kMost,
              "Of a key that says nothing else, or without keys of all clients together; 0: no limit");
  add_integer(app, "--tokens-per-minute", limits.tokens_per_minute, 0, kMost, "Of prompts and answers, likewise");
  add_integer(app, "--concurrent-requests", limits.concurrent_requests, 0, kMost, "Requests that may run at once, likewise");
  app.add_flag("--open-metrics", options.http.open_metrics, "GET /metrics needs no API key");
  app.add_option(
         "--cors-origin", options.http.cors_origins,
         "Origin of web pages that may read answers, localhost for this machine at any port, or * for all; may be given several times")
      ->check(check_origin)
      ->allow_extra_args(false);
  app.add_option("--image-host", options.image_fetch.hosts,
                 "Host from which images may be fetched, *.example for all below it, * for all; several times; none: no images are")
      ->type_name("HOST")
      ->check(check_image_host)
      ->allow_extra_args(false);
  app.add_option("--peers", options.peers.nodes,
                 "Server that is to have the same adapters and weights; a name stands for all its addresses; several times")
      ->type_name("HOST:PORT")
      ->check(peer_fault)
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--peer-key-file", options.peers.key_file, "File with the key of an administrator of theirs")->type_name("FILE");
  app.add_option("--peer-state", options.peers.state_folder, "Folder in which changes are kept, so that they outlast an end of all servers")
      ->type_name("DIR");
  app.add_flag("--image-private-hosts", options.image_fetch.private_addresses,
               "These may have addresses of this machine and of private networks, too");
}

std::string access_fault(const ServeOptions& options) {
  if (!options.peers.key_file.empty() && options.peers.nodes.empty()) return "--peer-key-file is about --peers, which is not given";
  if (!options.peers.state_folder.empty() && options.peers.nodes.empty()) return "--peer-state is about --peers, which is not given";
  return {};
}

}  // namespace braid::app
