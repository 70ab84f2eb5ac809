#include "store/redis/connection.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <sys/socket.h>
#include <utility>

namespace braid::store {
namespace {

constexpr std::size_t kPart = std::size_t{64} << 10U;  // of what is read at once, and more than an answer without a text takes

Error io_error(std::string message) { return {ErrorCode::kIo, std::move(message), {}}; }

// What is being received.
struct Sink {
  RedisReply reply;
  std::span<std::byte> place;
};

std::string first_word(std::string_view text) {
  const auto is_upper = [](char letter) { return letter >= 'A' && letter <= 'Z'; };
  const auto end =
      std::find_if_not(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(text.size(), 20)), is_upper);
  return end == text.begin() ? "an error" : std::string(text.begin(), end);
}

// Of a reader whose answers go to its Sink. There is no other memory in play: an array, which we never ask for, is refused.
redisReplyObjectFunctions reply_functions() {
  redisReplyObjectFunctions functions{};
  functions.createString = [](const redisReadTask* task, char* text, std::size_t bytes) -> void* {
    Sink& to = *static_cast<Sink*>(task->privdata);
    if (task->type == REDIS_REPLY_ERROR) {
      to.reply.kind = RedisReply::Kind::kError;
      to.reply.error = first_word({text, bytes});
    } else {
      to.reply.kind = RedisReply::Kind::kText;
      to.reply.bytes = bytes;
      if (bytes > 0 && bytes <= to.place.size()) std::memcpy(to.place.data(), text, bytes);
    }
    return &to;
  };
  functions.createArray = [](const redisReadTask*, auto) -> void* { return nullptr; };
  functions.createInteger = [](const redisReadTask* task, long long value) -> void* {
    Sink& to = *static_cast<Sink*>(task->privdata);
    to.reply.kind = RedisReply::Kind::kNumber;
    to.reply.number = value;
    return &to;
  };
  functions.createNil = [](const redisReadTask* task) -> void* {
    Sink& to = *static_cast<Sink*>(task->privdata);
    to.reply.kind = RedisReply::Kind::kNothing;
    return &to;
  };
  functions.freeObject = [](void*) {};
  return functions;
}

redisReader* new_reader() {
  static redisReplyObjectFunctions functions = reply_functions();  // of which hiredis only reads
  return redisReaderCreateWithFunctions(&functions);
}

}  // namespace

RedisConnection::RedisConnection(redisContext* context, int stop) : context_(context), reader_(new_reader()), stop_(stop) {}

RedisConnection::~RedisConnection() {
  redisReaderFree(reader_);
  redisFree(context_);
}

Result<std::unique_ptr<RedisConnection>> RedisConnection::open(const RedisAddress& address, const std::string& number, int stop,
                                                               Clock::time_point deadline) {
  redisContext* context =
      address.socket.empty() ? redisConnectNonBlock(number.c_str(), address.port) : redisConnectUnixNonBlock(address.socket.c_str());
  if (context == nullptr) return io_error("there is no memory for a connection");
  std::unique_ptr<RedisConnection> connection(new RedisConnection(context, stop));
  if (context->err != 0) return io_error(context->errstr);
  if (connection->reader_ == nullptr) return io_error("there is no memory for a connection");
  if (const Result<void> connected = connection->wait(POLLOUT, deadline); !connected) return connected.error();
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(context->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return io_error(std::strerror(error));
  if (const Result<void> known = connection->sign_in(address, deadline); !known) return known.error();
  return connection;
}

Result<void> RedisConnection::sign_in(const RedisAddress& address, Clock::time_point deadline) {
  const auto ask = [&](const char* refusal) -> Result<void> {
    if (const Result<void> sent = send(deadline); !sent) return sent;
    const Result<RedisReply> reply = receive({}, deadline);
    if (!reply) return reply.error();
    if (reply->kind != RedisReply::Kind::kText) return io_error(fmt::format("it refuses {} ({})", refusal, reply->error));
    return {};
  };
  if (!address.password.empty()) {
    address.user.empty() ? add({"AUTH", address.password}) : add({"AUTH", address.user, address.password});
    if (const Result<void> known = ask("the user or the password"); !known) return known;
  }
  if (address.database == 0) return {};
  add({"SELECT", fmt::to_string(address.database)});
  return ask("the database");
}

Result<void> RedisConnection::wait(short events, Clock::time_point deadline) const {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - Clock::now());
    if (left <= std::chrono::nanoseconds(0)) return io_error("it does not answer in time");
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec timeout{seconds.count(), (left - seconds).count()};
    std::array<pollfd, 2> files{{{context_->fd, events, 0}, {stop_, POLLIN, 0}}};
    const int ready = ::ppoll(files.data(), files.size(), &timeout, nullptr);
    if (ready < 0 && errno != EINTR) return io_error(std::strerror(errno));
    if (ready <= 0) continue;
    if (files[1].revents != 0) return io_error("the server ends");
    return {};
  }
}

void RedisConnection::add(std::initializer_list<std::string_view> words) {
  unsent_ += fmt::format("*{}\r\n", words.size());
  for (const std::string_view word : words) {
    unsent_ += fmt::format("${}\r\n", word.size());
    unsent_ += word;
    unsent_ += "\r\n";
  }
}

Result<void> RedisConnection::send(Clock::time_point deadline) {
  for (std::string_view rest = unsent_; !rest.empty();) {
    const ssize_t sent = ::send(context_->fd, rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      if (const Result<void> ready = wait(POLLOUT, deadline); !ready) return ready;
    } else if (errno != EINTR) {
      return io_error(std::strerror(errno));
    }
  }
  unsent_.clear();
  return {};
}

Result<RedisReply> RedisConnection::receive(std::span<std::byte> place, Clock::time_point deadline) {
  Sink sink{{}, place};
  reader_->privdata = &sink;
  for (;;) {
    void* done = nullptr;
    if (redisReaderGetReply(reader_, &done) != REDIS_OK) return io_error("its answer is none of a Redis");
    if (done != nullptr) return std::move(sink.reply);
    if (reader_->len - reader_->pos > place.size() + kPart) return io_error("its answer is longer than any that was asked for");
    if (const Result<void> read = read_some(deadline); !read) return read.error();
  }
}

Result<void> RedisConnection::read_some(Clock::time_point deadline) {
  std::array<char, kPart> bytes;
  for (;;) {
    const ssize_t got = ::recv(context_->fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got == 0) return io_error("it has closed the connection");
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno != EAGAIN) return io_error(std::strerror(errno));
    if (got > 0) {
      if (redisReaderFeed(reader_, bytes.data(), static_cast<std::size_t>(got)) != REDIS_OK)
        return io_error("there is no memory for its answer");
      return {};
    }
    if (const Result<void> ready = wait(POLLIN, deadline); !ready) return ready;
  }
}

bool RedisConnection::is_stale() const {
  pollfd file{context_->fd, POLLIN, 0};
  return reader_->len > reader_->pos || ::poll(&file, 1, 0) != 0;
}

}  // namespace braid::store
