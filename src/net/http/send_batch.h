// What many connections send in one turn of the loop.
#pragma once

#include "net/http/send_ring.h"

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace braid::net::http {

// Loop only. Bytes that are added go out together after the handler that runs, or before the batch would grow too large. A handler in the
// loop's queue shares it.
class SendBatch : public std::enable_shared_from_this<SendBatch> {
 public:
  // Whose bytes they are.
  class Sender {
   public:
    // The socket took the first `taken` bytes and not the `rest`, which is valid during the call; `error` is an errno, or 0.
    virtual void on_sent(std::size_t taken, std::string_view rest, int error) noexcept = 0;

   protected:
    ~Sender() = default;
  };

  // Without a ring each piece has a system call of its own.
  SendBatch(boost::asio::io_context& loop, std::unique_ptr<SendRing> ring);

  // Copies `bytes`. A sender has one piece at a time, and its socket stays open until on_sent() or forget().
  void add(Sender& sender, int socket, std::string_view bytes);
  // What it has added is not sent.
  void forget(const Sender& sender);
  void send() noexcept;  // who has been told must not be told again

 private:
  struct Piece {
    Sender* sender;
    int socket;
    std::size_t begin;  // in bytes_
    std::size_t size;
  };

  void post();

  boost::asio::io_context& loop_;
  const std::unique_ptr<SendRing> ring_;
  std::vector<Piece> pieces_;
  std::string bytes_;            // of all pieces
  std::vector<Outgoing> sends_;  // of each piece, while they are sent
  bool is_posted_ = false;
};

}  // namespace braid::net::http
