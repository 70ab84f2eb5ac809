// Requests of the command line to a braid server.
#pragma once

#include "app/options.h"
#include "braid/result.h"
#include "braid/value.h"
#include "registry/http_client.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace braid::app {

// The member of that name where it is a text; empty else.
std::string text_member(const Value& value, std::string_view name);

// With the key in BRAID_API_KEY, if there is one. Errors are what the server says; kModelNotLoaded: it cannot be reached.
class RemoteCall {
 public:
  RemoteCall(std::string url, const DataOptions& data);

  const std::string& url() const { return url_; }

  Result<Value> get(const std::string& path) const;
  Result<Value> post(const std::string& path, ValueDict body) const;
  Result<void> remove(const std::string& path, ValueDict body) const;
  Result<bool> has(const std::string& path) const;  // HEAD
  Result<void> send_file(const std::string& path, const std::string& file, const std::function<bool(std::uint64_t sent)>& on_sent) const;

  // An answer of a document a line. False of `take` ends it: kCancelled.
  Result<void> lines(const std::string& path, ValueDict body, const std::function<bool(const Value& line)>& take) const;

 private:
  registry::HttpRequest request(const std::string& method, const std::string& path, ValueDict body) const;
  Result<registry::HttpAnswer> send(registry::HttpRequest request) const;

  std::string url_;
  registry::HttpOptions http_;
  std::vector<std::string> headers_;
};

}  // namespace braid::app
