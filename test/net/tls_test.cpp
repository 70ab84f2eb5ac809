// TLS as curl sees it.
#include "net/http/tls.h"

#include "net/test_server.h"
#include "support/folder.h"

#include <arpa/inet.h>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <sstream>
#include <sys/socket.h>
#include <unistd.h>

namespace braid::test {
namespace {

using testing::HasSubstr;

// A client whose socket takes little, and that may do what curl never does.
class TlsClient {
 public:
  explicit TlsClient(std::uint16_t port) {
    const int receive_buffer = 4096;
    const timeval timeout{10, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    SSL_set_fd(session_, socket_);
    EXPECT_EQ(SSL_connect(session_), 1);
  }
  ~TlsClient() {
    SSL_free(session_);
    SSL_CTX_free(context_);
    ::close(socket_);
  }
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  void send(const std::string& bytes) {
    EXPECT_EQ(SSL_write(session_, bytes.data(), static_cast<int>(bytes.size())), static_cast<int>(bytes.size()));
  }

  // New keys, and the server is asked for new ones, too.
  void renew_keys() {
    EXPECT_EQ(SSL_key_update(session_, SSL_KEY_UPDATE_REQUESTED), 1);
    EXPECT_EQ(SSL_do_handshake(session_), 1);
  }

  void end() { EXPECT_EQ(::shutdown(socket_, SHUT_WR), 0); }

  std::string read_to_close() {
    std::string all;
    char bytes[4096];
    for (int count = 0; (count = SSL_read(session_, bytes, sizeof bytes)) > 0;) all.append(bytes, static_cast<std::size_t>(count));
    return all;
  }

 private:
  int socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  SSL_CTX* context_ = SSL_CTX_new(TLS_client_method());
  SSL* session_ = SSL_new(context_);
};

class Tls : public testing::Test {
 protected:
  Tls() { make("server", "one"); }

  // A certificate for localhost that signs itself; `name` tells it from others.
  void make(const std::string& file, const std::string& name) const {
    const std::string command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /O=" + name +
                                "/CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout " + path(file + ".key") +
                                " -out " + path(file + ".crt") + " 2>/dev/null";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  // Lets it end an hour ago.
  void expire(const std::string& file) const {
    FILE* key_file = std::fopen(path(file + ".key").c_str(), "r");
    FILE* certificate_file = std::fopen(path(file + ".crt").c_str(), "r");
    EVP_PKEY* key = PEM_read_PrivateKey(key_file, nullptr, nullptr, nullptr);
    X509* certificate = PEM_read_X509(certificate_file, nullptr, nullptr, nullptr);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -7200);
    X509_gmtime_adj(X509_getm_notAfter(certificate), -3600);
    EXPECT_GT(X509_sign(certificate, key, EVP_sha256()), 0);
    certificate_file = std::freopen(path(file + ".crt").c_str(), "w", certificate_file);
    EXPECT_EQ(PEM_write_X509(certificate_file, certificate), 1);
    X509_free(certificate);
    EVP_PKEY_free(key);
    std::fclose(certificate_file);
    std::fclose(key_file);
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
    return output("curl -sS -m 10 --cacert " + path("server.crt") + " " + arguments +
                  " https://localhost:" + std::to_string(server.port()) + target + " 2>&1");
  }

 private:
  Folder folder_;
};

TEST_F(Tls, AnswersAndStreams) {
  TestServer server(options());
  server.on_loop([&] { server.engine().script = [](const GenerationRequest&) { return events_of(std::string(5000, 'x')); }; });
  EXPECT_EQ(curl(server, "", "/health"), R"({"status":"ok"})");
  const std::string stream = curl(server, R"(-N -d '{"prompt":"a","stream":true,"max_tokens":900}')", "/v1/completions");
  EXPECT_THAT(stream, HasSubstr("\"x\""));
  EXPECT_TRUE(stream.ends_with("data: [DONE]\n\n"));
  EXPECT_EQ(curl(server,
                 "-X POST -H 'Expect: 100-continue' -d '{\"prompt\":\"" + std::string(60'000, 'a') + "\"}' -o /dev/null -w '%{http_code}'",
                 "/v1/tokenize"),
            "200");
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

TEST_F(Tls, PlainHttpIsToldAndClosed) {
  TestServer server(options());
  for (const std::string& request : {get("/health"), post("/v1/completions", R"({"prompt":"a"})")}) {
    RawClient plain = server.connect();
    plain.send(request);
    const std::string answer = plain.read_to_close();
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 Bad Request\r\n")) << answer;
    EXPECT_THAT(answer, HasSubstr("this port speaks HTTPS: use https://"));
  }
  RawClient neither = server.connect();
  neither.send("SSH-2.0-x\r\n");
  EXPECT_TRUE(neither.closed());
  EXPECT_TRUE(server.eventually([&] { return server.server().open_connections() == 0; }));
}

TEST_F(Tls, ACertificateThatHasExpiredIsUsedWithAWarning) {
  expire("server");
  std::ostringstream log;
  spdlog::default_logger()->sinks().push_back(std::make_shared<spdlog::sinks::ostream_sink_mt>(log, true));
  TestServer server(options());
  spdlog::default_logger()->sinks().pop_back();
  EXPECT_THAT(log.str(), HasSubstr("server.crt has expired: it was valid until "));
  EXPECT_EQ(curl(server, "-k", "/health"), R"({"status":"ok"})");
  EXPECT_THAT(curl(server, "", "/health"), HasSubstr("certificate has expired"));
}

TEST_F(Tls, SilenceIsClosed) {
  net::ServerOptions short_options = options();
  short_options.header_timeout = std::chrono::milliseconds(30);
  TestServer server(short_options);
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

TEST_F(Tls, NewKeysWhileTheClientDoesNotReadCostNoBytes) {
  constexpr std::size_t kTokens = 20'000;
  net::ServerOptions small = options();
  small.client_buffer_bytes = 8192;
  TestServer server(small);
  server.on_loop([&] { server.engine().script = [](const GenerationRequest&) { return events_of(std::string(kTokens, 'x')); }; });
  TlsClient client(server.port());
  client.send(post("/v1/completions", R"({"prompt":"a","stream":true,"max_tokens":900})", "Connection: close\r\n"));
  double waiting = 0.0;
  for (int i = 0; i < 100 && waiting == 0.0; ++i) waiting = figure(curl(server, "", "/metrics"), "braid_client_backlog_bytes");
  ASSERT_GT(waiting, 0.0);
  for (int i = 0; i < 3; ++i) {
    client.renew_keys();
    EXPECT_EQ(curl(server, "", "/health"), R"({"status":"ok"})");  // the loop has had its turn
  }
  const std::string answer = client.read_to_close();
  std::size_t count = 0;
  for (std::size_t at = answer.find("\"x\""); at != std::string::npos; at = answer.find("\"x\"", at + 1)) ++count;
  EXPECT_EQ(count, kTokens);
}

TEST_F(Tls, AnEndIsSeenWhileTheClientDoesNotRead) {
  for (const bool behind_bytes : {false, true}) {
    net::ServerOptions small = options();
    small.client_buffer_bytes = 8192;
    TestServer server(small);
    server.on_loop([&] { server.engine().script = [](const GenerationRequest&) { return events_of(std::string(20'000, 'x')); }; });
    TlsClient client(server.port());
    client.send(post("/v1/completions", R"({"prompt":"a","stream":true,"max_tokens":900})"));
    double waiting = 0.0;
    for (int i = 0; i < 100 && waiting == 0.0; ++i) waiting = figure(curl(server, "", "/metrics"), "braid_client_backlog_bytes");
    ASSERT_GT(waiting, 0.0);
    if (behind_bytes) {
      client.renew_keys();
      EXPECT_EQ(curl(server, "", "/health"), R"({"status":"ok"})");  // the loop has had its turn
    }
    EXPECT_TRUE(server.eventually([&] { return server.server().open_connections() == 1; }));
    client.end();
    EXPECT_TRUE(server.eventually([&] { return server.server().open_connections() == 0; })) << behind_bytes;
  }
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
  for (const std::string endless : {"/dev/zero", "/dev"})
    EXPECT_THAT(net::http::TlsIdentity::load(path("server.crt"), endless).error().message,
                HasSubstr(endless + " for TLS: it is no regular file"));
  std::ofstream(path("bad.key")) << "no key";
  EXPECT_THAT(net::http::TlsIdentity::load(path("server.crt"), path("bad.key")).error().message, HasSubstr("bad.key"));
  make("other", "other");
  EXPECT_THAT(net::http::TlsIdentity::load(path("server.crt"), path("other.key")).error().message, HasSubstr("other.key"));
}

}  // namespace
}  // namespace braid::test
