// Compressed bodies: every coding through every route, and what bombs and damaged ones come to.
#include "net/http/content_coding.h"

#include "net/test_server.h"

#include <gtest/gtest.h>
#include <string>
#include <zlib.h>
#include <zstd.h>

namespace braid::test {
namespace {

// zlib's windows: 15 with its own header, 31 with that of gzip, -15 without any.
std::string deflated(std::string_view text, int window_bits) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, window_bits, 9, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string gzipped(std::string_view text) { return deflated(text, 31); }

std::string zstandard(std::string_view text, int window_log = 0) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  if (window_log > 0) ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_log);
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  std::string out(ZSTD_compressBound(text.size()), '\0');
  const std::size_t size = ZSTD_compress2(context, out.data(), out.size(), text.data(), text.size());
  EXPECT_EQ(ZSTD_isError(size), 0U);
  ZSTD_freeCCtx(context);
  out.resize(size);
  return out;
}

struct Coded {
  std::string coding;
  std::string body;
};

std::vector<Coded> all_codings(std::string_view text) {
  const std::size_t half = text.size() / 2;  // of bodies in two parts
  return {{"gzip", gzipped(text)},         {"X-GZIP", gzipped(text)},
          {"deflate", deflated(text, 15)}, {"deflate", deflated(text, -15)},
          {"zstd", zstandard(text)},       {"Zstd", zstandard(text.substr(0, half)) + zstandard(text.substr(half))},
          {"identity", std::string(text)}, {"gzip", gzipped(text.substr(0, half)) + gzipped(text.substr(half))}};
}

std::string header(const std::string& coding) { return "Content-Encoding: " + coding + "\r\n"; }

TEST(ContentCoding, ABodyOfAnyLengthComesBackUpToTheLimit) {
  for (const std::size_t size : {1U, 7U, 4096U, 65535U, 65536U, 65537U, 200'000U, 1'000'000U}) {
    std::string text(size, 'a');
    for (std::size_t i = 0; i < size; i += 3) text[i] = static_cast<char>('a' + i * i % 23);
    for (const auto& [coding, body] : all_codings(text)) {
      const Result<std::string> out = net::http::decode_body(body, coding, size);
      ASSERT_TRUE(out) << coding << size;
      EXPECT_EQ(*out, text) << coding << size;
      if (coding == "identity") continue;
      const Result<std::string> beyond = net::http::decode_body(body, coding, size - 1);
      ASSERT_FALSE(beyond) << coding << size;
      EXPECT_EQ(beyond.error().code, ErrorCode::kTooLarge) << coding << size;
    }
  }
}

TEST(ContentCoding, WhatIsCutOffOrDamagedIsRefused) {
  const std::string text(5000, 'x');
  for (const auto& [coding, body] : all_codings(text)) {
    if (coding == "identity") continue;
    for (const std::string& wrong : {body.substr(0, body.size() - 1), body.substr(0, body.size() / 3), body + "tail", "no" + body}) {
      const Result<std::string> out = net::http::decode_body(wrong, coding, 1 << 20);
      ASSERT_FALSE(out) << coding;
      EXPECT_EQ(out.error().code, ErrorCode::kInvalidArgument) << coding;
    }
  }
}

TEST(ContentCoding, AZstdWindowBeyondTheStandardsIsRefused) {
  std::string text(std::size_t{20} << 20, 'x');
  for (std::size_t i = 0; i < text.size(); i += 4096) text[i] = static_cast<char>(i / 4096);
  EXPECT_TRUE(net::http::decode_body(zstandard(text, 23), "zstd", text.size()));
  EXPECT_FALSE(net::http::decode_body(zstandard(text, 25), "zstd", text.size()));
}

TEST(ContentCoding, EveryRouteReadsEveryCoding) {
  TestServer server;
  const std::pair<std::string, std::string> requests[] = {
      {"/v1/completions", R"({"prompt":"abcdef"})"},
      {"/v1/chat/completions", R"({"messages":[{"role":"user","content":"a"}],"stream":true})"},
      {"/v1/responses", R"({"input":"abcdef"})"},
      {"/v1/messages", R"({"max_tokens":5,"messages":[{"role":"user","content":"a"}]})"},
      {"/v1/messages/count_tokens", R"({"messages":[{"role":"user","content":"a"}]})"},
      {"/tokenize", R"({"content":"abcdef"})"},
      {"/api/generate", R"({"prompt":"abcdef"})"},
  };
  for (const auto& [path, body] : requests) {
    for (const Coded& coded : all_codings(body)) {
      RawClient client = server.connect();
      client.send(post(path, coded.body, header(coded.coding)) + post(path, body));
      EXPECT_EQ(client.read_reply().status, 200) << path << coded.coding;
      EXPECT_EQ(client.read_reply().status, 200) << path << coded.coding;
    }
    EXPECT_EQ(server.ask(post(path, gzipped("{"), header("gzip"))).status, 400) << path;
  }
}

TEST(ContentCoding, AnotherCodingIs415WithThoseThatThereAre) {
  TestServer server;
  for (const std::string coding : {"br", "compress", "gzip, zstd", "nothing"}) {
    const Reply reply = server.ask(post("/v1/completions", "x", header(coding)));
    EXPECT_EQ(reply.status, 415) << coding;
    EXPECT_EQ(reply.headers.at("accept-encoding"), "gzip, deflate, zstd");
    EXPECT_NE(reply.body.find("unsupported_media_type"), std::string::npos) << reply.body;
  }
  EXPECT_NE(server.ask(post("/v1/messages", "x", header("br"))).body.find(R"("type":"error")"), std::string::npos);
  EXPECT_EQ(server.ask(get("/v1/models", header("br"))).status, 200);  // no body, no coding
}

TEST(ContentCoding, ABombIs413AndOnlyTheLimitComesOut) {
  net::ServerOptions options = test_options();
  options.max_body_bytes = 100'000;
  TestServer server(options);
  const std::string zeros(std::size_t{30} << 20, '0');
  for (const auto& [coding, body] :
       {Coded{"gzip", gzipped(zeros)}, Coded{"zstd", zstandard(zeros)}, Coded{"deflate", deflated(zeros, 15)}}) {
    ASSERT_LT(body.size(), options.max_body_bytes);
    const Reply reply = server.ask(post("/v1/completions", body, header(coding)));
    EXPECT_EQ(reply.status, 413) << coding;
    EXPECT_NE(reply.body.find("larger than 100000 bytes once it is unpacked"), std::string::npos) << reply.body;
  }
}

TEST(ContentCoding, WhoIsNotLetInHasNothingUnpacked) {
  net::ServerOptions options = test_options();
  options.api_keys = {{"a", net::access::digest_of("sk"), {}}};
  TestServer server(options);
  EXPECT_EQ(server.ask(post("/v1/completions", gzipped("{"), header("gzip"))).status, 401);
}

}  // namespace
}  // namespace braid::test
