#include "net/http/tls.h"

#include <algorithm>
#include <array>
#include <boost/asio/error.hpp>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <new>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <spdlog/spdlog.h>
#include <string_view>
#include <sys/socket.h>
#include <system_error>
#include <utility>

namespace braid::net::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

int to_int(std::size_t size) { return static_cast<int>(std::min<std::size_t>(size, INT_MAX)); }

struct FreeContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using Context = std::unique_ptr<SSL_CTX, FreeContext>;

Error unusable(const std::string& file) {
  const unsigned long code = ERR_peek_error();
  const char* reason = ERR_SYSTEM_ERROR(code) ? std::strerror(ERR_GET_REASON(code)) : ERR_reason_error_string(code);
  ERR_clear_error();
  return Error{ErrorCode::kBadFile, fmt::format("cannot use {} for TLS: {}", file, reason != nullptr ? reason : "unknown reason"), ""};
}

// One that has expired still serves clients that do not look, and those that others serve meanwhile: no reason not to start.
void warn_of_dates(const SSL_CTX* context, const std::string& file) {
  const X509* certificate = SSL_CTX_get0_certificate(context);
  const auto written = [](const ASN1_TIME* time) {
    std::tm date{};
    return ASN1_TIME_to_tm(time, &date) == 1 ? fmt::format("{:%F %T} UTC", date) : std::string("a time that cannot be read");
  };
  if (const ASN1_TIME* end = X509_get0_notAfter(certificate); X509_cmp_current_time(end) < 0)
    spdlog::warn("the certificate {} has expired: it was valid until {}, and clients that check it will not connect", file, written(end));
  if (const ASN1_TIME* begin = X509_get0_notBefore(certificate); X509_cmp_current_time(begin) > 0)
    spdlog::warn("the certificate {} is not valid before {}: clients that check it will not connect until then", file, written(begin));
}

Result<Context> make_context(const std::string& certificate, const std::string& key) {
  for (const std::string& file : {certificate, key}) {  // the library would read one without an end for ever, and wait for a pipe
    std::error_code error;
    if (!std::filesystem::is_regular_file(file, error) && !error)
      return Error{ErrorCode::kBadFile, fmt::format("cannot use {} for TLS: it is no regular file", file), ""};
  }
  ERR_clear_error();
  Context context(SSL_CTX_new(TLS_server_method()));
  if (context == nullptr) throw std::bad_alloc();
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);                       // tickets need no memory here
  SSL_CTX_set_default_passwd_cb(context.get(), [](char*, int, int, void*) { return 0; });  // instead of asking the terminal
  if (SSL_CTX_use_certificate_chain_file(context.get(), certificate.c_str()) != 1) return unusable(certificate);
  if (SSL_CTX_use_PrivateKey_file(context.get(), key.c_str(), SSL_FILETYPE_PEM) != 1 || SSL_CTX_check_private_key(context.get()) != 1)
    return unusable(key);
  warn_of_dates(context.get(), certificate);
  return context;
}

// What a client that speaks plain HTTP to this port can read. What it has sent is taken off, or the system would reset the connection.
void answer_plain_http(int socket) {
  constexpr std::string_view kAnswer =
      "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: 116\r\nConnection: close\r\n\r\n"
      R"({"error":{"message":"this port speaks HTTPS: use https://","type":"invalid_request_error","param":null,"code":null}})";
  static_assert(kAnswer.size() - kAnswer.find("\r\n\r\n") - 4 == 116);
  if (::send(socket, kAnswer.data(), kAnswer.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) return;
  ::shutdown(socket, SHUT_WR);
  std::array<char, 4096> rest{};
  for (int reads = 0; reads < 16 && ::recv(socket, rest.data(), rest.size(), MSG_DONTWAIT) > 0; ++reads) continue;
}

}  // namespace

TlsStream::~TlsStream() { SSL_free(session_); }

void TlsStream::read_result(int result, error_code& failure) {
  const int system_error = errno;
  const int reason = SSL_get_error(session_, result);
  wants_write_ = reason == SSL_ERROR_WANT_WRITE;
  if (wants_write_ || reason == SSL_ERROR_WANT_READ) {
    failure = asio::error::would_block;
    return;
  }
  broken_ = reason != SSL_ERROR_ZERO_RETURN;
  if (reason == SSL_ERROR_SSL && ERR_GET_REASON(ERR_peek_error()) == SSL_R_HTTP_REQUEST) answer_plain_http(SSL_get_fd(session_));
  if (reason == SSL_ERROR_SYSCALL && system_error != 0) {
    failure.assign(system_error, boost::system::system_category());
  } else {
    failure = reason == SSL_ERROR_SSL ? error_code(asio::error::connection_aborted) : error_code(asio::error::eof);
  }
  ERR_clear_error();
}

std::size_t TlsStream::read_some(void* bytes, std::size_t size, error_code& failure) {
  failure.clear();
  ERR_clear_error();
  errno = 0;
  const int count = SSL_read(session_, bytes, to_int(size));
  if (count > 0) return static_cast<std::size_t>(count);
  read_result(count, failure);
  return 0;
}

std::size_t TlsStream::write_some(const void* bytes, std::size_t size, error_code& failure) {
  failure.clear();
  ERR_clear_error();
  errno = 0;
  const int count = SSL_write(session_, bytes, to_int(size));
  is_writing_ = false;
  if (count > 0) return static_cast<std::size_t>(count);
  read_result(count, failure);
  is_writing_ = wants_write_;
  return 0;
}

void TlsStream::say_end() {
  if (broken_ || !SSL_is_init_finished(session_)) return;
  ERR_clear_error();
  SSL_shutdown(session_);
  ERR_clear_error();
}

Result<std::unique_ptr<TlsIdentity>> TlsIdentity::load(std::string certificate, std::string key) {
  std::signal(SIGPIPE, SIG_IGN);
  std::unique_ptr<TlsIdentity> identity(new TlsIdentity(std::move(certificate), std::move(key)));
  const Result<void> loaded = identity->reload();
  if (!loaded) return loaded.error();
  return identity;
}

TlsIdentity::~TlsIdentity() { SSL_CTX_free(context_); }

Result<void> TlsIdentity::reload() {
  Result<Context> context = make_context(certificate_, key_);
  if (!context) return context.error();
  SSL_CTX_free(std::exchange(context_, context->release()));  // sessions share it until they end
  return {};
}

std::unique_ptr<TlsStream> TlsIdentity::accept(int socket) {
  SSL* session = SSL_new(context_);
  if (session == nullptr) return nullptr;
  auto stream = std::make_unique<TlsStream>(session);
  if (SSL_set_fd(session, socket) != 1) return nullptr;
  SSL_set_accept_state(session);
  return stream;
}

}  // namespace braid::net::http
