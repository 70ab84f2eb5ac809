// A client that sends and sees bytes. Every wait is bounded; a timeout shows as a short answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace braid::test {

struct Reply {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // without chunk framing
};

class RawClient {
 public:
  struct Address {
    std::string host;  // a numeric IPv6 address
    std::uint16_t port = 0;
  };

  explicit RawClient(std::uint16_t port, int receive_buffer_bytes = 0);
  RawClient(int socket, std::uint16_t port);  // connects a TCP socket
  explicit RawClient(const Address& address);
  explicit RawClient(const std::string& unix_path);
  ~RawClient();
  RawClient(RawClient&& other) noexcept;
  RawClient(const RawClient&) = delete;

  bool send(std::string_view bytes);             // false when the server has closed, which most tests see by reading
  std::string read_until(std::string_view end);  // through the first `end`; what follows stays for the next read
  std::string read_to_close();
  Reply read_reply(bool head_only = false);
  bool closed();  // waits for the server's FIN or RST

  void finish_sending();  // FIN
  void reset();           // RST
  void fall_silent();     // as if the machine had vanished: nothing that arrives is seen or acknowledged

 private:
  void connect(const void* address, std::size_t size);
  bool fill();

  int socket_ = -1;
  std::string input_;
};

std::string post(std::string_view target, std::string_view body, std::string_view headers = "", std::string_view version = "1.1");
// The same as an administrator's is, where there are no keys.
std::string from_this_machine(std::string request);
std::string get(std::string_view target, std::string_view headers = "");

// The value of a metric without labels in the text of /metrics; -1 when it is not there.
double figure(std::string_view metrics, std::string_view name);

// Ids, times and the Date header vary: replaced by fixed words.
std::string normalized(std::string text);

}  // namespace braid::test
