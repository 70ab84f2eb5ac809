#include "net/page/page.h"

#include "net/http/error_response.h"

#include <fmt/format.h>
#include <string>
#include <string_view>

// Defined in page.S: name, begin and end of each file, then a null.
extern "C" {
[[gnu::visibility("hidden")]] extern const char* const braid_page_files[][3];
}

namespace braid::net::page {
namespace {

// What a model says must never run, whatever the page's own code does with it: no inline script, no text that becomes HTML (Trusted
// Types), no other origin.
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

std::string_view type_of(std::string_view name) {
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  return name.ends_with(".svg") ? "image/svg+xml" : "text/html; charset=utf-8";
}

}  // namespace

http::Response file(std::string_view name) {
  for (const auto* entry = braid_page_files; (*entry)[0] != nullptr; ++entry) {
    const auto& [known, begin, end] = *entry;
    if (known != name) continue;
    http::Response response;
    response.content_type = type_of(name);
    response.body.assign(begin, end);
    response.headers = {{"Content-Security-Policy", std::string(kPolicy)},
                        {"X-Content-Type-Options", "nosniff"},
                        {"Referrer-Policy", "no-referrer"},
                        {"Cross-Origin-Opener-Policy", "same-origin"},
                        {"Cache-Control", "no-cache"}};
    return response;
  }
  return http::error_response({ErrorCode::kNotFound, fmt::format("the page has no file '{}'", name), ""});
}

http::Response index() { return file("index.html"); }

http::Response docs() { return file("docs.html"); }

}  // namespace braid::net::page
