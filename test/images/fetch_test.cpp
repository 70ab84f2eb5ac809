#include "images/fetch.h"

#include <arpa/inet.h>
#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace braid::images {
namespace {

bool is_public_address(const char* text) {
  sockaddr_storage storage{};
  auto* inet = reinterpret_cast<sockaddr_in*>(&storage);
  auto* inet6 = reinterpret_cast<sockaddr_in6*>(&storage);
  if (inet_pton(AF_INET, text, &inet->sin_addr) == 1) {
    inet->sin_family = AF_INET;
  } else {
    EXPECT_EQ(inet_pton(AF_INET6, text, &inet6->sin6_addr), 1) << text;
    inet6->sin6_family = AF_INET6;
  }
  return is_public(reinterpret_cast<const sockaddr&>(storage));
}

TEST(Fetch, KnowsTheInternetsAddresses) {
  for (const char* text : {"1.1.1.1", "8.8.8.8", "93.184.216.34", "172.15.0.1", "172.32.0.1", "100.63.255.255", "100.128.0.1", "198.20.0.1",
                           "223.255.255.255", "2606:4700:4700::1111", "2001:4860:4860::8888", "2a00:1450::1", "::ffff:8.8.8.8"})
    EXPECT_TRUE(is_public_address(text)) << text;
  for (const char* text : {"0.0.0.0",
                           "10.1.2.3",
                           "100.64.0.1",
                           "100.127.255.255",
                           "127.0.0.1",
                           "127.255.0.1",
                           "169.254.169.254",
                           "172.16.0.1",
                           "172.31.255.255",
                           "192.0.0.8",
                           "192.0.2.1",
                           "192.168.1.1",
                           "198.18.0.1",
                           "198.19.255.255",
                           "203.0.113.5",
                           "224.0.0.1",
                           "240.0.0.1",
                           "255.255.255.255",
                           "::",
                           "::1",
                           "::ffff:127.0.0.1",
                           "::ffff:169.254.169.254",
                           "::7f00:1",
                           "64:ff9b::7f00:1",
                           "fc00::1",
                           "fd12::1",
                           "fe80::1",
                           "ff02::1",
                           "2002:7f00:1::",
                           "2001::1",
                           "2001:db8::1"})
    EXPECT_FALSE(is_public_address(text)) << text;
}

bool allowed(const std::vector<std::string>& hosts, const std::string& url) {
  FetchRules rules;
  rules.hosts = hosts;
  return refusal_of(rules, url).empty();
}

TEST(Fetch, AsksOnlyHostsThatAreAllowed) {
  EXPECT_FALSE(allowed({}, "https://pictures.example/a.png"));
  EXPECT_TRUE(allowed({"pictures.example"}, "https://pictures.example/a.png"));
  EXPECT_TRUE(allowed({"pictures.example"}, "http://PICTURES.example./a.png"));
  EXPECT_FALSE(allowed({"pictures.example"}, "https://pictures.example:8443/a.png"));
  EXPECT_TRUE(allowed({"pictures.example:8443"}, "https://pictures.example:8443/a.png"));
  EXPECT_TRUE(allowed({"pictures.example:*"}, "https://pictures.example:8443/a.png"));
  EXPECT_FALSE(allowed({"pictures.example"}, "https://evil.pictures.example/"));
  EXPECT_TRUE(allowed({"*.example"}, "https://evil.pictures.example/"));
  EXPECT_FALSE(allowed({"*.example"}, "https://example/"));
  EXPECT_FALSE(allowed({"*.pictures.example"}, "https://notpictures.example/"));
  EXPECT_TRUE(allowed({"*"}, "https://anything.test/"));
  EXPECT_FALSE(allowed({"*"}, "https://user:secret@anything.test/"));
  for (const char* url : {"file:///etc/passwd", "ftp://pictures.example/a", "gopher://pictures.example/", "pictures", "", "data:,x"})
    EXPECT_FALSE(allowed({"*", "*:*"}, url)) << url;
}

// Answers requests on the loopback, one after the other, by their paths.
class SmallServer {
 public:
  SmallServer() : listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(listener_, 16), 0);
    socklen_t size = sizeof address;
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~SmallServer() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  SmallServer(const SmallServer&) = delete;
  SmallServer& operator=(const SmallServer&) = delete;

  std::string url(const std::string& path) const { return "http://127.0.0.1:" + std::to_string(port_) + path; }

 private:
  void serve() {
    for (int peer = accept(listener_, nullptr, nullptr); peer >= 0; peer = accept(listener_, nullptr, nullptr)) {
      std::string request(4096, '\0');
      const ssize_t count = read(peer, request.data(), request.size());
      const std::string answer = answer_to(request.substr(0, static_cast<std::size_t>(std::max<ssize_t>(count, 0))));
      for (std::size_t sent = 0; sent < answer.size();) {
        const ssize_t written = send(peer, answer.data() + sent, answer.size() - sent, MSG_NOSIGNAL);
        if (written <= 0) break;
        sent += static_cast<std::size_t>(written);
      }
      close(peer);
    }
  }

  std::string answer_to(const std::string& request) const {
    const std::string path = request.substr(4, request.find(' ', 4) - 4);
    const std::string end = "Connection: close\r\n\r\n";
    const auto leads_to = [&](const std::string& where) {
      return "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: " + where + "\r\n" + end;
    };
    if (path == "/picture") return "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n" + end + "picture";
    if (path == "/large") return "HTTP/1.1 200 OK\r\n" + end + std::string(3 << 20, 'x');
    if (path == "/told") return "HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n" + end;
    if (path == "/on") return leads_to("/picture");
    if (path == "/inside") return leads_to("http://169.254.169.254/latest/meta-data/");
    if (path == "/file") return leads_to("file:///etc/passwd");
    if (path == "/round") return leads_to("/round");
    return "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n" + end;
  }

  int listener_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

TEST(Fetch, GetsAFileFromInsideOnlyWhereThatIsAllowed) {
  const SmallServer server;
  FetchRules rules;
  rules.hosts = {"*:*"};
  const Result<std::string> refused = fetch(rules, server.url("/picture"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "its host is not on the internet");
  rules.private_addresses = true;
  const Result<std::string> got = fetch(rules, server.url("/picture"));
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(*got, "picture");
}

TEST(Fetch, ChecksEachRedirection) {
  const SmallServer server;
  FetchRules rules;
  rules.hosts = {"127.0.0.1:*"};
  rules.private_addresses = true;
  const Result<std::string> on = fetch(rules, server.url("/on"));
  ASSERT_TRUE(on) << on.error().message;
  EXPECT_EQ(*on, "picture");
  const Result<std::string> inside = fetch(rules, server.url("/inside"));
  ASSERT_FALSE(inside);
  EXPECT_EQ(inside.error().message, "images from 169.254.169.254:80 are not allowed here");
  EXPECT_FALSE(fetch(rules, server.url("/file")));
  const Result<std::string> round = fetch(rules, server.url("/round"));
  ASSERT_FALSE(round);
  EXPECT_EQ(round.error().message, "it leads on too many times");
  const Result<std::string> none = fetch(rules, server.url("/none"));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "the answer was 404");
}

TEST(Fetch, TakesNoMoreThanIsAllowed) {
  const SmallServer server;
  FetchRules rules;
  rules.hosts = {"127.0.0.1:*"};
  rules.private_addresses = true;
  rules.most_bytes = std::size_t{2} << 20;
  EXPECT_FALSE(fetch(rules, server.url("/large")));
  EXPECT_FALSE(fetch(rules, server.url("/told")));
  rules.most_bytes = std::size_t{4} << 20;
  const Result<std::string> got = fetch(rules, server.url("/large"));
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->size(), std::size_t{3} << 20);
}

}  // namespace
}  // namespace braid::images
