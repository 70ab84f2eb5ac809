// TLS by OpenSSL over sockets that somebody else owns; the only file that knows the library.
#pragma once

#include "braid/result.h"

#include <boost/system/error_code.hpp>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

struct ssl_st;
struct ssl_ctx_st;

namespace braid::net::http {

// One connection's session. Reading and writing are those of a non-blocking socket: would_block asks to wait for what wants_write()
// says and to call again, with the same bytes when writing. The first read does the handshake. The socket outlives it.
class TlsStream {
 public:
  explicit TlsStream(ssl_st* session) : session_(session) {}
  ~TlsStream();
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  std::size_t read_some(void* bytes, std::size_t size, boost::system::error_code& failure);
  std::size_t write_some(const void* bytes, std::size_t size, boost::system::error_code& failure);
  bool wants_write() const { return wants_write_; }

  // The socket has taken a part of a record. Until write_some() has sent the rest nobody may read: the library answers a client's new keys
  // at once, finds that it cannot, and gives the connection up.
  bool is_writing() const { return is_writing_; }

  void say_end();  // close_notify, if the socket takes it

 private:
  void read_result(int result, boost::system::error_code& failure);

  ssl_st* session_;
  bool wants_write_ = false;
  bool is_writing_ = false;
  bool broken_ = false;
};

// Certificate and key of the server: TLS 1.2 and later. Makes the process ignore SIGPIPE, which the library's writes may raise.
class TlsIdentity {
 public:
  // PEM files; the certificate's is followed by those of its issuers. kBadFile with the reason.
  static Result<std::unique_ptr<TlsIdentity>> load(std::string certificate, std::string key);
  ~TlsIdentity();
  TlsIdentity(const TlsIdentity&) = delete;
  TlsIdentity& operator=(const TlsIdentity&) = delete;

  // Reads the files again, for later connections; after a failure everything stays as it was.
  Result<void> reload();

  std::unique_ptr<TlsStream> accept(int socket);  // null when memory has run out

 private:
  TlsIdentity(std::string certificate, std::string key) : certificate_(std::move(certificate)), key_(std::move(key)) {}

  std::string certificate_;
  std::string key_;
  ssl_ctx_st* context_ = nullptr;
};

}  // namespace braid::net::http
