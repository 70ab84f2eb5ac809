// Requests to other servers, by libcurl: nothing here asks anybody without having been told to.
#pragma once

#include "braid/result.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::registry {

struct HttpOptions {
  bool direct = false;  // without the proxies of the environment (https_proxy, no_proxy and so on, as libcurl reads them)
  std::string ca_file;  // PEM of who vouches for servers besides the system's; empty: nobody
  std::chrono::seconds connect_timeout{30};
  std::chrono::seconds stall_timeout{60};  // with next to nothing coming, the server counts as gone; 0: never
};

struct HttpRequest {
  std::string method = "GET";
  std::string url;
  std::vector<std::string> headers = {};  // "Name: value"; not sent to another host that a redirection names
  std::string body = {};
  std::string upload_file = {};                                                            // instead of the body
  std::function<bool(std::uint64_t sent)> on_upload = [](std::uint64_t) { return true; };  // false ends it
  // Takes an answer of status 200 piece by piece, which is then no part of HttpAnswer; false ends it.
  std::function<bool(std::string_view)> on_body = {};
  bool insecure = false;               // whoever answers will do
  std::string connect_to = {};         // HOST:PORT instead of what the URL's host stands for, whose name certificates are held against
  std::function<bool()> goes_on = {};  // asked about once a second while nothing comes; false ends it
};

struct HttpAnswer {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;  // small letters; of the last answer
  std::string body;
  std::string url;  // that answered, after redirections

  std::string header(std::string_view name) const;  // empty: there is none
};

// Sends it and takes an answer of at most `most` bytes. Follows redirections, from https never to http. kIo with a sentence that names the
// host when there was no answer.
Result<HttpAnswer> ask(const HttpOptions& options, const HttpRequest& request, std::size_t most);

// scheme://host[:port] of a URL, in small letters.
std::string origin_of(std::string_view url);
// For a path's segment or a query's value.
std::string percent_encoded(std::string_view text);

}  // namespace braid::registry
