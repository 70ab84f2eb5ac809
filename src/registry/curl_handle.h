// What all uses of libcurl have in common.
#pragma once

#include "registry/http_client.h"

#include <curl/curl.h>
#include <memory>
#include <string>
#include <vector>

namespace braid::registry {

struct CurlEnd {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using CurlHandle = std::unique_ptr<CURL, CurlEnd>;
using CurlList = std::unique_ptr<curl_slist, CurlEnd>;

// A handle for `url` with timeouts, redirections and certificates as they are meant; `headers` outlive it.
CurlHandle make_handle(const HttpOptions& options, const std::string& url, const curl_slist* headers, bool insecure);
CurlList make_list(const std::vector<std::string>& lines);

// "registry.example: connection refused": what went wrong, without what is secret in the URL.
Error transfer_error(CURLcode code, const std::string& url);

}  // namespace braid::registry
