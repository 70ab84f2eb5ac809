#include "app/cli/serve/groups.h"
#include "app/option_types.h"

#include <charconv>
#include <fmt/format.h>
#include <pwd.h>
#include <vector>

namespace braid::app {
namespace {

using Words = std::vector<std::string>;

template <class Number>
bool read_whole(std::string_view text, Number& value, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc{} && end == text.data() + text.size();
}

// HOST:PORT, where an IPv6 address stands in brackets.
net::TcpAddress parse_address(const std::string& text) {
  net::TcpAddress address;
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || !read_whole(std::string_view(text).substr(colon + 1), address.port))
    throw CLI::ValidationError("--listen", fmt::format("'{}' is not an address: write HOST:PORT or [IPV6]:PORT", text));
  address.host = text.substr(0, colon);
  const bool bracketed = address.host.starts_with('[') && address.host.ends_with(']');
  if (bracketed) address.host = address.host.substr(1, address.host.size() - 2);
  if (address.host.empty() || (!bracketed && address.host.find(':') != std::string::npos))
    throw CLI::ValidationError("--listen", fmt::format("'{}' is not an address: an IPv6 address stands in brackets", text));
  return address;
}

uid_t parse_user(const std::string& text) {
  uid_t user = 0;
  if (read_whole(text, user)) return user;
  const passwd* found = ::getpwnam(text.c_str());
  if (found == nullptr) throw CLI::ValidationError("--unix-users", fmt::format("there is no user '{}'", text));
  return found->pw_uid;
}

}  // namespace

void add_listen_options(CLI::App& app, ServeOptions& options) {
  net::ServerOptions& http = options.http;
  http.listen.clear();
  app.add_option("--host", options.address.host, "Address to listen on")->capture_default_str();
  add_port(app, "--port", options.address.port, "Port to listen on; 0 picks a free one and prints it");
  app.add_option_function<Words>(
         "--listen",
         [&http](const Words& words) {
    http.listen.clear();
    for (const std::string& word : words) http.listen.push_back(parse_address(word));
         },
         "More addresses, or others instead where neither --host nor --port is given")
      ->type_name("HOST:PORT");
  app.add_flag("--ollama", options.is_ollama, "Listens on 127.0.0.1:11434, too, where clients of Ollama look");
  app.add_option("--unix-socket", http.unix_socket, "Unix socket to listen on, for processes of this user")->type_name("PATH");
  app.add_option_function<std::string>(
         "--unix-mode",
         [&http](const std::string& text) {
    if (!read_whole(text, http.unix_mode, 8) || http.unix_mode > 0777)
      throw CLI::ValidationError("--unix-mode", fmt::format("'{}' is not a mode such as 0660", text));
         },
         "Its mode")
      ->type_name("OCTAL")
      ->default_str("0600");
  app.add_option_function<Words>(
         "--unix-users",
         [&http](const Words& words) {
    http.unix_users.clear();
    for (const std::string& word : words) http.unix_users.push_back(parse_user(word));
         },
         "Other users whose processes may connect there")
      ->type_name("USER")
      ->delimiter(',');
  app.add_option(
         "--unix-token", http.unix_token,
         "File with the token that requests there show as X-Braid-Token, made if there is none; PATH.token if not given; off: no token")
      ->type_name("FILE");
  app.add_option("--tls-cert", http.tls_certificate, "PEM file with the certificate and those of its issuers; read again at SIGHUP")
      ->type_name("FILE");
  app.add_option("--tls-key", http.tls_key, "PEM file with its key")->type_name("FILE");
  app.add_option_function<std::string>(
         "--metrics", [&http](const std::string& state) { http.metrics = state == "on"; }, "GET /metrics and /v1/metrics: on or off")
      ->default_str("on")
      ->check(CLI::IsMember({"on", "off"}));
  app.add_option_function<Words>(
         "--metrics-names",
         [&http](const Words& names) {
    for (const std::string& name : names) (name == "vllm" ? http.vllm_metrics : http.llamacpp_metrics) = true;
         },
         "GET /metrics also under these servers' names: vllm, llamacpp")
      ->delimiter(',')
      ->check(CLI::IsMember({"vllm", "llamacpp"}));
  app.add_option("--takeover", options.takeover,
                 "Control socket: a server that runs there passes on its listening sockets, and this one will do so in turn")
      ->type_name("PATH");
  app.add_option("--pid-file", options.pid_file, "File with this process's number while it serves")->type_name("FILE");
  add_duration(app, "--drain-delay", options.drain_delay,
               "How long after SIGTERM everything goes on, but for /readyz, which says so: for proxies to notice first");
  add_duration(app, "--drain-timeout", options.drain_timeout, "How long running answers may go on after SIGTERM or a takeover");
}

void settle_listen_options(const CLI::App& serve, ServeOptions& options) {
  const bool is_named = serve.count("--host") + serve.count("--port") > 0;
  const bool is_only = options.http.listen.empty() && options.http.unix_socket.empty();
  options.names_addresses = is_named || !is_only;
  if (is_named || is_only) options.http.listen.insert(options.http.listen.begin(), options.address);
  if (options.is_ollama) options.http.listen.push_back({"127.0.0.1", 11434});
}

std::string listen_fault(const ServeOptions& options) {
  if (options.http.tls_certificate.empty() != options.http.tls_key.empty()) return "--tls-cert and --tls-key go together";
  if (!options.takeover.empty() && !options.no_model && !options.model.kv_memory)
    return "--takeover needs --kv-memory: what memory is left cannot be measured while two servers run";
  return {};
}

}  // namespace braid::app
