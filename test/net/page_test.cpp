// The web page: who gets it, and that a browser will run nothing but its own files.
#include "net/raw_client.h"
#include "net/test_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

namespace braid::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::string kBrowser = "Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\n";

TEST(Page, IsForBrowsersAndOllamasClientsFindTheirWords) {
  TestServer server;
  const Reply page = server.ask(get("/", kBrowser));
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.headers.at("content-type"), "text/html; charset=utf-8");
  EXPECT_EQ(page.headers.at("vary"), "Accept");
  EXPECT_THAT(page.body, StartsWith("<!doctype html>"));
  for (const char* accept : {"", "Accept: */*\r\n", "Accept: application/json\r\n"}) {
    const Reply words = server.ask(get("/", accept));
    EXPECT_EQ(words.body, "Ollama is running") << accept;
    EXPECT_EQ(words.headers.at("vary"), "Accept") << accept;
  }
}

TEST(Page, LetsABrowserRunItsOwnFilesOnly) {
  TestServer server;
  for (const char* path : {"/", "/docs", "/page/docs.js", "/page/index.html", "/page/main.js", "/page/page.css", "/page/icon.svg"}) {
    const Reply file = server.ask(get(path, kBrowser));
    ASSERT_EQ(file.status, 200) << path;
    const std::string& policy = file.headers.at("content-security-policy");
    EXPECT_THAT(policy, StartsWith("default-src 'none'; script-src 'self'; style-src 'self';")) << path;
    EXPECT_THAT(policy, HasSubstr("require-trusted-types-for 'script'")) << path;
    EXPECT_THAT(policy, Not(HasSubstr("unsafe"))) << path;
    EXPECT_EQ(file.headers.at("x-content-type-options"), "nosniff") << path;
    EXPECT_EQ(file.headers.at("referrer-policy"), "no-referrer") << path;
  }
  EXPECT_EQ(server.ask(get("/page/main.js")).headers.at("content-type"), "text/javascript; charset=utf-8");
  EXPECT_EQ(server.ask(get("/page/page.css")).headers.at("content-type"), "text/css; charset=utf-8");
  EXPECT_EQ(server.ask(get("/page/icon.svg")).headers.at("content-type"), "image/svg+xml");
}

TEST(Page, HasNoOtherFiles) {
  TestServer server;
  for (const char* path : {"/page/x.js", "/page/", "/page/../page.cpp", "/page/%2e%2e/page.cpp", "/page//etc/passwd", "/page/main.js%00",
                           "/page/page.S", "/page/MAIN.JS"})
    EXPECT_EQ(server.ask(get(path)).status, 404) << path;
}

}  // namespace
}  // namespace braid::test
