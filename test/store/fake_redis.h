// Something on a Unix socket that talks like a Redis, and can be told not to.
#pragma once

#include "support/folder.h"

#include <charconv>
#include <functional>
#include <map>
#include <mutex>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace braid::store::test {

class FakeRedis {
 public:
  using Words = std::vector<std::string>;

  FakeRedis() {
    listener_ = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path().copy(static_cast<char*>(address.sun_path), sizeof address.sun_path - 1);
    bound_ = ::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 && ::listen(listener_, 64) == 0;
    thread_ = std::thread([this] { accept_all(); });
  }
  ~FakeRedis() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
    for (const int file : connections_) ::shutdown(file, SHUT_RDWR);
    for (std::thread& thread : threads_) thread.join();
    for (const int file : connections_) ::close(file);
  }
  FakeRedis(const FakeRedis&) = delete;
  FakeRedis& operator=(const FakeRedis&) = delete;

  std::string path() const { return folder_.path() + "/redis"; }
  bool is_bound() const { return bound_; }

  // What it answers to a command instead; empty: as a Redis would. "-": nothing at all.
  void answer(std::function<std::string(const Words&)> instead) {
    const std::lock_guard lock(mutex_);
    instead_ = std::move(instead);
  }
  std::map<std::string, std::string> values() {
    const std::lock_guard lock(mutex_);
    return values_;
  }
  void change(const std::function<void(std::string& value)>& each) {
    const std::lock_guard lock(mutex_);
    for (auto& [key, value] : values_) each(value);
  }
  std::vector<Words> heard() {
    const std::lock_guard lock(mutex_);
    return heard_;
  }

 private:
  void accept_all() {
    for (;;) {
      const int file = ::accept(listener_, nullptr, nullptr);
      if (file < 0) return;
      connections_.push_back(file);
      threads_.emplace_back([this, file] { serve(file); });
    }
  }

  void serve(int file) {
    std::string unread;
    for (Words words; read_command(file, unread, words);) {
      const std::string reply = reply_to(words);
      if (reply == "-") continue;
      for (std::string_view rest = reply; !rest.empty();) {
        const ssize_t sent = ::send(file, rest.data(), rest.size(), MSG_NOSIGNAL);
        if (sent <= 0) return;
        rest.remove_prefix(static_cast<std::size_t>(sent));
      }
    }
  }

  static bool fill(int file, std::string& unread) {
    char bytes[4096];
    const ssize_t got = ::recv(file, static_cast<char*>(bytes), sizeof bytes, 0);
    if (got > 0) unread.append(static_cast<char*>(bytes), static_cast<std::size_t>(got));
    return got > 0;
  }

  static bool read_line(int file, std::string& unread, std::string& line) {
    std::size_t end = 0;
    while ((end = unread.find("\r\n")) == std::string::npos)
      if (!fill(file, unread)) return false;
    line = unread.substr(0, end);
    unread.erase(0, end + 2);
    return true;
  }

  static std::size_t number_of(const std::string& line) {
    std::size_t number = 0;
    std::from_chars(line.data() + 1, line.data() + line.size(), number);
    return number;
  }

  static bool read_command(int file, std::string& unread, Words& words) {
    std::string line;
    if (!read_line(file, unread, line)) return false;
    words.assign(number_of(line), {});
    for (std::string& word : words) {
      if (!read_line(file, unread, line)) return false;
      const std::size_t bytes = number_of(line);
      while (unread.size() < bytes + 2)
        if (!fill(file, unread)) return false;
      word = unread.substr(0, bytes);
      unread.erase(0, bytes + 2);
    }
    return !words.empty();
  }

  std::string reply_to(const Words& words) {
    const std::lock_guard lock(mutex_);
    heard_.push_back(words);
    if (std::string instead = instead_ ? instead_(words) : std::string(); !instead.empty()) return instead;
    const std::string& command = words[0];
    if (command == "AUTH" || command == "SELECT") return "+OK\r\n";
    const auto found = values_.find(words[1]);
    const bool is_there = found != values_.end();
    if (command == "GET") return is_there ? "$" + std::to_string(found->second.size()) + "\r\n" + found->second + "\r\n" : "$-1\r\n";
    if (command == "SET") {
      values_[words[1]] = words[2];
      return "+OK\r\n";
    }
    if (command == "DEL") values_.erase(words[1]);
    return is_there ? ":1\r\n" : ":0\r\n";  // EXISTS, EXPIRE and DEL
  }

  const braid::test::Folder folder_;
  int listener_ = -1;
  bool bound_ = false;
  std::thread thread_;
  std::vector<int> connections_;  // of the thread's, until it has ended
  std::vector<std::thread> threads_;
  std::mutex mutex_;  // of all that follow
  std::function<std::string(const Words&)> instead_;
  std::map<std::string, std::string> values_;
  std::vector<Words> heard_;
};

}  // namespace braid::store::test
