// TLS as curl sees it.
#include <gmock/gmock.h>

#include <net/http/tls.h>

#include <cstdlib>
#include <fstream>

#include "support/folder.h"
#include "test_server.h"

namespace braid::test {
namespace {

using testing::HasSubstr;

class Tls : public testing::Test {
 protected:
  Tls() { make("server", "one"); }

  // A certificate for localhost that signs itself; `name` tells it from others.
  void make(const std::string& file, const std::string& name) const {
    const std::string command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /O=" + name +
                                "/CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout " + path(file + ".key") + " -out " +
                                path(file + ".crt") + " 2>/dev/null";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  std::string path(const std::string& file) const { return folder_ / file; }
  net::ServerOptions options() const {
    net::ServerOptions options = test_options();
    options.tls_certificate = path("server.crt");
    options.tls_key = path("server.key");
    return options;
  }
  // What `command` writes.
  static std::string output(const std::string& command) {
    std::string text;
    FILE* pipe = ::popen(command.c_str(), "r");
    char buffer[4096];
    for (std::size_t count = 0; (count = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, count);
    ::pclose(pipe);
    return text;
  }
  std::string curl(const TestServer& server, const std::string& arguments, const std::string& target) const {
    return output("curl -sS -m 10 --cacert " + path("server.crt") + " " + arguments + " https://localhost:" + std::to_string(server.port()) +
                  target + " 2>&1");
  }

 private:
  Folder folder_;
};

TEST_F(Tls, AnswersAndStreams) {
  TestServer server(options());
  server.on_loop([&] { server.engine().script = [](const Request&) { return events_of(std::string(5000, 'x')); }; });
  EXPECT_EQ(curl(server, "", "/health"), R"({"status":"ok"})");
  const std::string stream = curl(server, R"(-N -d '{"prompt":"a","stream":true,"max_tokens":900}')", "/v1/completions");
  EXPECT_THAT(stream, HasSubstr("\"x\""));
  EXPECT_TRUE(stream.ends_with("data: [DONE]\n\n"));
  EXPECT_EQ(curl(server, "-X POST -H 'Expect: 100-continue' -d '{\"prompt\":\"" + std::string(60'000, 'a') + "\"}' -o /dev/null -w '%{http_code}'",
                 "/v1/tokenize"), "200");
}

TEST_F(Tls, KeepsConnectionsForSeveralRequests) {
  TestServer server(options());
  const std::string url = "https://localhost:" + std::to_string(server.port()) + "/health";
  EXPECT_EQ(curl(server, url + " -w '%{num_connects}'", "/health"), R"({"status":"ok"}1{"status":"ok"}0)");
}

TEST_F(Tls, RefusesOldVersions) {
  TestServer server(options());
  EXPECT_EQ(curl(server, "--tlsv1.2 --tls-max 1.2", "/health"), R"({"status":"ok"})");
  EXPECT_EQ(curl(server, "--tlsv1.3", "/health"), R"({"status":"ok"})");
  EXPECT_THAT(curl(server, "--tlsv1.0 --tls-max 1.1 --ciphers DEFAULT@SECLEVEL=0", "/health"), HasSubstr("curl: (35)"));
}

TEST_F(Tls, PlainHttpAndSilenceAreClosed) {
  net::ServerOptions short_options = options();
  short_options.header_timeout = std::chrono::milliseconds(30);
  TestServer server(short_options);
  RawClient plain = server.connect();
  plain.send(get("/health"));
  EXPECT_TRUE(plain.closed());
  RawClient silent = server.connect();
  EXPECT_TRUE(silent.closed());
  EXPECT_TRUE(server.eventually([&] { return server.server().open_connections() == 0; }));
}

TEST_F(Tls, AClientThatGoesCancelsItsRequest) {
  TestServer server(options());
  server.on_loop([&] { server.engine().script = nullptr; });
  // curl ends by itself after the first second.
  curl(server, R"(-m 1 -d '{"prompt":"a"}')", "/v1/completions");
  EXPECT_TRUE(server.eventually([&] { return server.engine().submitted.size() == 1 && server.engine().live.empty(); }));
  server.on_loop([&] { EXPECT_EQ(server.engine().cancelled, 1U); });
}

TEST_F(Tls, CertificatesAreReadAgain) {
  TestServer server(options());
  const std::string issuer = "-v -k -o /dev/null";
  EXPECT_THAT(curl(server, issuer, "/health"), HasSubstr("O=one"));
  std::ofstream(path("server.key")) << "no key";
  server.on_loop([&] { EXPECT_FALSE(server.server().reload_tls()); });
  EXPECT_THAT(curl(server, issuer, "/health"), HasSubstr("O=one"));
  make("server", "two");
  server.on_loop([&] { EXPECT_TRUE(server.server().reload_tls()); });
  EXPECT_THAT(curl(server, issuer, "/health"), HasSubstr("O=two"));
}

TEST_F(Tls, FilesThatCannotBeUsedAreNamed) {
  EXPECT_THAT(net::http::TlsIdentity::load(path("none.crt"), path("server.key")).error().message,
              HasSubstr("none.crt for TLS: No such file or directory"));
  std::ofstream(path("bad.key")) << "no key";
  EXPECT_THAT(net::http::TlsIdentity::load(path("server.crt"), path("bad.key")).error().message, HasSubstr("bad.key"));
  make("other", "other");
  EXPECT_THAT(net::http::TlsIdentity::load(path("server.crt"), path("other.key")).error().message, HasSubstr("other.key"));
}

}  // namespace
}  // namespace braid::test
