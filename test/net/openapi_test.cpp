// The API's description against the router and the tables of parameters.
#include "net/docs/documents.h"
#include "net/endpoints/endpoint.h"
#include "net/endpoints/router.h"
#include "net/json/parse.h"
#include "net/openai/request.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>

namespace braid::test {
namespace {

Value document() {
  std::string text = net::docs::openapi().body;
  return net::json::parse(text).value();
}

const Value& at(const Value& value, std::initializer_list<std::string_view> path) {
  const Value* found = &value;
  for (const std::string_view key : path) {
    found = found->find(key);
    if (found == nullptr) throw std::runtime_error("no member " + std::string(key));
  }
  return *found;
}

// The properties of a schema and of all that it consists of.
void gather(const Value& api, const Value& schema, ValueDict& out) {
  if (const Value* reference = schema.find("$ref")) {
    const std::string name = reference->get_if<std::string>()->substr(std::string_view("#/components/schemas/").size());
    return gather(api, at(api, {"components", "schemas", name}), out);
  }
  if (const Value* parts = schema.find("allOf"))
    for (const Value& part : *parts->get_if<ValueList>()) gather(api, part, out);
  if (const Value* properties = schema.find("properties"))
    for (const auto& member : *properties->get_if<ValueDict>()) out.push_back(member);
}

// The endpoint that an operation of the document reaches.
const net::Endpoint* endpoint_of(std::string path, const std::string& operation) {
  for (std::size_t begin = path.find('{'); begin != std::string::npos; begin = path.find('{'))
    path.replace(begin, path.find('}') - begin + 1, "x");
  const auto method = operation == "post"     ? net::http::Method::kPost
                      : operation == "delete" ? net::http::Method::kDelete
                      : operation == "head"   ? net::http::Method::kHead
                                              : net::http::Method::kGet;
  const net::Resolution resolution = net::resolve(method, path);
  const auto* route = std::get_if<net::Route>(&resolution);
  return route != nullptr ? route->endpoint : nullptr;
}

TEST(OpenApi, DescribesEveryRouteAndNoOtherWithExamples) {
  const Value api = document();
  std::set<const net::Endpoint*> described;
  for (const auto& [path, operations] : *at(api, {"paths"}).get_if<ValueDict>()) {
    for (const auto& [method, operation] : *operations.get_if<ValueDict>()) {
      const net::Endpoint* endpoint = endpoint_of(path, method);
      ASSERT_NE(endpoint, nullptr) << method << " " << path << " is not served";
      described.insert(endpoint);
      const Value* answer = at(operation, {"responses"}).find("200");
      const bool has_content = answer != nullptr && answer->find("content") != nullptr;
      const ValueDict none;
      for (const auto& [type, content] : has_content ? *answer->find("content")->get_if<ValueDict>() : none)
        EXPECT_NE(content.find("example"), nullptr) << path << " " << type;
      const bool takes_bytes = method == "post" && at(operation, {"requestBody", "content"}).find("application/octet-stream") != nullptr;
      EXPECT_TRUE(has_content || takes_bytes || method == "head" || path == "/api/copy" || path == "/api/delete") << path;
      if (method == "post" && !takes_bytes) {
        EXPECT_NE(at(operation, {"requestBody", "content", "application/json"}).find("example"), nullptr) << path;
      }
    }
  }
  for (const net::Endpoint& endpoint : net::endpoints()) EXPECT_TRUE(described.contains(&endpoint)) << endpoint.path;
}

TEST(OpenApi, NamesTheStatusesThatAreNotOfOneField) {
  const Value api = document();
  for (const auto& [path, operations] : *at(api, {"paths"}).get_if<ValueDict>()) {
    for (const auto& [method, operation] : *operations.get_if<ValueDict>()) {
      const net::Endpoint& endpoint = *endpoint_of(path, method);
      const Value& responses = at(operation, {"responses"});
      const bool generates = net::generates(endpoint);
      const bool works = net::takes_work(endpoint);
      const bool is_readiness = endpoint.path == "/readyz" || endpoint.path == "/health" || endpoint.path == "/ping";
      const bool wants_key = operation.find("security") == nullptr;
      EXPECT_EQ(wants_key, !net::is_open(endpoint, net::ServerOptions())) << path;
      EXPECT_EQ(responses.find("401") != nullptr, wants_key) << path;
      EXPECT_EQ(responses.find("403") != nullptr, endpoint.caller == net::Caller::kAdministrator) << path;
      EXPECT_EQ(responses.find("429") != nullptr, works) << path;
      EXPECT_EQ(responses.find("503") != nullptr, works || is_readiness) << path;
      EXPECT_EQ(responses.find("504") != nullptr, generates) << path;
    }
  }
}

double number(const Value& value) {
  const auto* integer = value.get_if<std::int64_t>();
  return integer != nullptr ? static_cast<double>(*integer) : *value.get_if<double>();
}

// What the schema says of a limit must be what the rule says.
struct RangeCheck {
  const Value& schema;
  std::string_view name;

  void limit(const char* key, double expected) const {
    ASSERT_NE(schema.find(key), nullptr) << name << " " << key;
    EXPECT_NEAR(number(*schema.find(key)), expected, 1e-6) << name << " " << key;
  }
  void operator()(net::wish::Reader) const {}
  void operator()(const net::wish::FlagRule&) const { EXPECT_EQ(*schema.find("type"), Value("boolean")) << name; }
  void operator()(const net::wish::NumberRule& rule) const {
    limit(rule.above_low ? "exclusiveMinimum" : "minimum", rule.low);
    limit("maximum", rule.high);
  }
  template <class Owner>
  void operator()(const net::wish::CountRule<Owner>& rule) const {
    limit("minimum", rule.low);
    if (rule.high != std::numeric_limits<std::int64_t>::max()) limit("maximum", static_cast<double>(rule.high));
  }
};

void check_parameters(std::string_view path, std::initializer_list<std::span<const net::wish::Parameter>> tables) {
  const Value api = document();
  ValueDict members;
  gather(api, at(api, {"paths", path, "post", "requestBody", "content", "application/json", "schema"}), members);
  std::set<std::string_view> known;
  for (const auto table : tables)
    for (const net::wish::Parameter& parameter : table) {
      known.insert(parameter.name);
      const auto found = std::find_if(members.begin(), members.end(), [&](const auto& member) { return member.first == parameter.name; });
      ASSERT_NE(found, members.end()) << path << " does not describe " << parameter.name;
      std::visit(RangeCheck{found->second, parameter.name}, parameter.rule);
    }
  for (const auto& [name, schema] : members) EXPECT_TRUE(known.contains(name)) << path << " describes " << name << ", which nothing reads";
}

TEST(OpenApi, DescribesEveryParameterWithItsRange) {
  namespace openai = net::openai;
  namespace wish = net::wish;
  check_parameters("/v1/completions", {openai::completion_parameters(), wish::common_parameters(), wish::sampling_parameters(),
                                       wish::structured_output_parameters(), wish::token_parameters(), wish::speculation_parameters(),
                                       wish::other_server_parameters()});
  check_parameters("/v1/chat/completions", {openai::chat_parameters(), openai::tool_parameters(), wish::chat_parameters(),
                                            wish::common_parameters(), wish::sampling_parameters(), wish::structured_output_parameters(),
                                            wish::token_parameters(), wish::speculation_parameters(), wish::other_server_parameters()});
}

}  // namespace
}  // namespace braid::test
