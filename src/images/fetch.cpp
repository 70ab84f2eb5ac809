#include "images/fetch.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <curl/curl.h>
#include <fmt/format.h>
#include <memory>
#include <netinet/in.h>
#include <sys/socket.h>
#include <utility>

namespace braid::images {
namespace {

using Clock = std::chrono::steady_clock;

struct CurlEnd {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
  void operator()(char* text) const { curl_free(text); }
};

struct Range4 {
  std::uint32_t first;
  int bits;
};

constexpr std::uint32_t address4(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  return a << 24U | b << 16U | c << 8U | d;
}

// What is not the internet's (RFC 6890 and its successors).
constexpr std::array kReserved4 = {
    Range4{address4(0, 0, 0, 0), 8},      Range4{address4(10, 0, 0, 0), 8},     Range4{address4(100, 64, 0, 0), 10},
    Range4{address4(127, 0, 0, 0), 8},    Range4{address4(169, 254, 0, 0), 16}, Range4{address4(172, 16, 0, 0), 12},
    Range4{address4(192, 0, 0, 0), 24},   Range4{address4(192, 0, 2, 0), 24},   Range4{address4(192, 88, 99, 0), 24},
    Range4{address4(192, 168, 0, 0), 16}, Range4{address4(198, 18, 0, 0), 15},  Range4{address4(198, 51, 100, 0), 24},
    Range4{address4(203, 0, 113, 0), 24}, Range4{address4(224, 0, 0, 0), 4},    Range4{address4(240, 0, 0, 0), 4},
};

bool is_public4(std::uint32_t address) {
  return std::ranges::none_of(kReserved4, [address](const Range4& range) {
    const auto shift = static_cast<unsigned>(32 - range.bits);
    return address >> shift == range.first >> shift;
  });
}

bool is_public6(const std::array<std::uint8_t, 16>& address) {
  const auto word = [&](std::size_t at) { return static_cast<std::uint32_t>(address[at]) << 8U | address[at + 1]; };
  const auto last4 = address4(address[12], address[13], address[14], address[15]);
  const bool leading_zeros = std::all_of(address.begin(), address.begin() + 10, [](std::uint8_t byte) { return byte == 0; });
  if (leading_zeros && word(10) == 0xFFFF) return is_public4(last4);
  if ((address[0] & 0xE0U) != 0x20U) return false;                       // all that is assigned is below 2000::/3
  if (word(0) == 0x2002) return false;                                   // 6to4, which may lead inside
  return !(word(0) == 0x2001 && (word(2) < 0x200 || word(2) == 0xDB8));  // protocols, tunnels and documents
}

struct Address {
  std::string host;
  std::string port;
};

// Of an address by http or https.
Result<Address> parse(const std::string& text) {
  const std::unique_ptr<CURLU, CurlEnd> url(curl_url());
  const auto part = [&](CURLUPart which) {
    char* found = nullptr;
    if (curl_url_get(url.get(), which, &found, CURLU_DEFAULT_PORT) != CURLUE_OK) return std::string();
    const std::unique_ptr<char, CurlEnd> owner(found);
    return std::string(found);
  };
  if (url == nullptr || curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) return invalid_argument("it is no address");
  const std::string scheme = part(CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") return invalid_argument("it is no address by http or https");
  if (!part(CURLUPART_USER).empty() || !part(CURLUPART_PASSWORD).empty()) return invalid_argument("it has a name or a password in it");
  Address address{part(CURLUPART_HOST), part(CURLUPART_PORT)};
  std::ranges::transform(address.host, address.host.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (address.host.ends_with('.')) address.host.pop_back();
  return address;
}

bool allows(std::string_view entry, const Address& address) {
  std::string_view host = entry;
  std::string_view port;
  const std::size_t colon = entry.rfind(':');
  if (colon != std::string_view::npos && entry.find(']', colon) == std::string_view::npos) {
    host = entry.substr(0, colon);
    port = entry.substr(colon + 1);
  }
  const bool port_fits = port.empty() ? address.port == "80" || address.port == "443" : port == "*" || port == address.port;
  if (!port_fits) return false;
  if (host == "*") return true;
  return host.starts_with("*.") ? address.host.ends_with(host.substr(1)) : host == address.host;
}

// One transfer, and why it was broken off.
struct Transfer {
  const FetchRules& rules;
  std::string body = {};
  std::string refusal = {};
};

curl_socket_t open_socket(void* data, curlsocktype, curl_sockaddr* address) {
  auto& transfer = *static_cast<Transfer*>(data);
  if (!transfer.rules.private_addresses && !is_public(address->addr)) {
    transfer.refusal = "its host is not on the internet";
    return CURL_SOCKET_BAD;
  }
  return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

std::size_t take_body(char* bytes, std::size_t size, std::size_t count, void* data) {
  auto& transfer = *static_cast<Transfer*>(data);
  if (transfer.body.size() + size * count > transfer.rules.most_bytes) {
    transfer.refusal = fmt::format("it is larger than {} MB", transfer.rules.most_bytes >> 20U);
    return 0;
  }
  transfer.body.append(bytes, size * count);
  return size * count;
}

using Handle = std::unique_ptr<CURL, CurlEnd>;

Handle make_handle(Transfer& transfer, const std::string& url, std::chrono::milliseconds left) {
  Handle handle(curl_easy_init());
  if (!handle) return handle;
  curl_easy_setopt(handle.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(handle.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle.get(), CURLOPT_QUICK_EXIT, 1L);  // its end waits for no resolver
  curl_easy_setopt(handle.get(), CURLOPT_PROXY, "");
  curl_easy_setopt(handle.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle.get(), CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(handle.get(), CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
  curl_easy_setopt(handle.get(), CURLOPT_USERAGENT, "braid");
  curl_easy_setopt(handle.get(), CURLOPT_TIMEOUT_MS, static_cast<long>(left.count()));
  curl_easy_setopt(handle.get(), CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(transfer.rules.most_bytes));
  curl_easy_setopt(handle.get(), CURLOPT_OPENSOCKETFUNCTION, open_socket);
  curl_easy_setopt(handle.get(), CURLOPT_OPENSOCKETDATA, &transfer);
  curl_easy_setopt(handle.get(), CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(handle.get(), CURLOPT_WRITEDATA, &transfer);
  return handle;
}

}  // namespace

bool is_public(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    sockaddr_in inet{};
    std::memcpy(&inet, &address, sizeof inet);
    return is_public4(ntohl(inet.sin_addr.s_addr));
  }
  if (address.sa_family != AF_INET6) return false;
  sockaddr_in6 inet{};
  std::memcpy(&inet, &address, sizeof inet);
  std::array<std::uint8_t, 16> bytes{};
  std::memcpy(bytes.data(), &inet.sin6_addr, bytes.size());
  return is_public6(bytes);
}

std::string refusal_of(const FetchRules& rules, const std::string& url) {
  const Result<Address> address = parse(url);
  if (!address) return address.error().message;
  if (std::ranges::any_of(rules.hosts, [&](const std::string& entry) { return allows(entry, *address); })) return {};
  return fmt::format("images from {}:{} are not allowed here", address->host, address->port);
}

Result<std::string> fetch(const FetchRules& rules, const std::string& url) {
  const Clock::time_point end = Clock::now() + rules.timeout;
  std::string next = url;
  for (int step = 0; step <= rules.redirections; ++step) {
    if (std::string refusal = refusal_of(rules, next); !refusal.empty()) return invalid_argument(std::move(refusal));
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) return invalid_argument("it took too long");
    Transfer transfer{rules};
    const Handle handle = make_handle(transfer, next, left);
    if (!handle) return invalid_argument("there is no memory for it");
    const CURLcode code = curl_easy_perform(handle.get());
    if (!transfer.refusal.empty()) return invalid_argument(std::move(transfer.refusal));
    if (code != CURLE_OK) return invalid_argument(curl_easy_strerror(code));
    long status = 0;
    curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &status);
    if (status == 200) return std::move(transfer.body);
    const char* location = nullptr;
    curl_easy_getinfo(handle.get(), CURLINFO_REDIRECT_URL, &location);
    if (location == nullptr) return invalid_argument(fmt::format("the answer was {}", status));
    if (next.starts_with("https:") && !std::string_view(location).starts_with("https:"))
      return invalid_argument("it leads from https to http");
    next = location;
  }
  return invalid_argument("it leads on too many times");
}

}  // namespace braid::images
