// A connection over which whole messages go. It blocks: the strand's, or a rank's own thread's, which have nothing else to do.
#pragma once

#include "braid/result.h"
#include "ranks/message.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace braid::ranks {

class Channel {
 public:
  explicit Channel(int socket = -1) : socket_(socket) {}
  ~Channel();
  Channel(Channel&& other) noexcept;
  Channel& operator=(Channel&& other) noexcept;

  // "host:port"
  static Result<Channel> connect(const std::string& address);

  int socket() const { return socket_; }
  bool is_open() const { return socket_ >= 0; }
  // The other side has closed it, or is gone. Does not wait.
  bool is_hung_up() const;
  // The last receive() found that the other side has closed it, as it does at an ordinary end.
  bool has_ended() const { return has_ended_; }
  // Whoever sends or receives finds it closed. Any thread.
  void hang_up() const;

  // kIo: the other side is gone, or takes nothing for that long.
  Result<void> send(Kind kind, std::span<const std::byte> bytes);

  struct Message {
    Kind kind;
    Bytes bytes;
  };
  // The next message, in memory that is used again. kIo: the other side is gone, or says nothing for `limit`; none: for ever. At most
  // `most` bytes of it.
  Result<const Message*> receive(std::optional<std::chrono::milliseconds> limit = {}, std::uint64_t most = kMostBytes);
  // Of the last one, with the memory, which is not used again then.
  Bytes take_bytes() { return std::exchange(message_.bytes, {}); }

 private:
  Result<void> read(std::span<std::byte> out, std::optional<std::chrono::steady_clock::time_point> end);

  int socket_;
  bool has_ended_ = false;
  Message message_{Kind::kFailure, {}};
};

// Takes connections on a port of its own.
class Listener {
 public:
  // "host:port"; port 0: any.
  static Result<Listener> open(const std::string& address);

  std::string address() const { return address_; }
  int socket() const { return socket_.socket(); }  // can be read when somebody has come
  Result<Channel> accept();

 private:
  Listener(Channel socket, std::string address) : socket_(std::move(socket)), address_(std::move(address)) {}

  Channel socket_;
  std::string address_;
};

}  // namespace braid::ranks
