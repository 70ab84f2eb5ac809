// The API's description against the router and the tables of parameters.
#include <gtest/gtest.h>
#include <net/docs/documents.h>
#include <net/json/parse.h>
#include <net/openai/parameters.h>
#include <net/router.h>

#include <algorithm>
#include <set>
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

std::string described_path(const net::RouteRow& route, const Value& paths) {
  const std::string path = std::string(route.path) + (route.argument ? "{model}" : "");
  return paths.find("/v1" + path) != nullptr ? "/v1" + path : path;
}

TEST(OpenApi, DescribesEveryRouteAndNoOther) {
  const Value api = document();
  const Value& paths = at(api, {"paths"});
  std::set<std::string> served;
  for (const net::RouteRow& route : net::routes()) {
    const std::string path = described_path(route, paths);
    served.insert(path);
    ASSERT_NE(paths.find(path), nullptr) << path;
    const bool is_post = route.method == net::http::Method::kPost;
    const Value* operation = paths.find(path)->find(is_post ? "post" : "get");
    ASSERT_NE(operation, nullptr) << path;
    for (const auto& [type, content] : *at(*operation, {"responses", "200", "content"}).get_if<ValueDict>())
      EXPECT_NE(content.find("example"), nullptr) << path << " " << type;
    if (is_post) {
      EXPECT_NE(at(*operation, {"requestBody", "content", "application/json"}).find("example"), nullptr) << path;
    }
  }
  for (const auto& [path, operations] : *paths.get_if<ValueDict>()) EXPECT_TRUE(served.contains(path)) << path;
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
  void operator()(net::openai::Reader) const {}
  void operator()(const net::openai::FlagRule&) const { EXPECT_EQ(*schema.find("type"), Value("boolean")) << name; }
  void operator()(const net::openai::NumberRule& rule) const {
    limit(rule.above_low ? "exclusiveMinimum" : "minimum", rule.low);
    limit("maximum", rule.high);
  }
  template <class Owner>
  void operator()(const net::openai::CountRule<Owner>& rule) const {
    limit("minimum", rule.low);
    if (rule.high != std::numeric_limits<std::int64_t>::max()) limit("maximum", static_cast<double>(rule.high));
  }
};

void check_parameters(std::string_view path, std::initializer_list<std::span<const net::openai::Parameter>> tables) {
  const Value api = document();
  ValueDict members;
  gather(api, at(api, {"paths", path, "post", "requestBody", "content", "application/json", "schema"}), members);
  std::set<std::string_view> known;
  for (const auto table : tables)
    for (const net::openai::Parameter& parameter : table) {
      known.insert(parameter.name);
      const auto found = std::find_if(members.begin(), members.end(), [&](const auto& member) { return member.first == parameter.name; });
      ASSERT_NE(found, members.end()) << path << " does not describe " << parameter.name;
      std::visit(RangeCheck{found->second, parameter.name}, parameter.rule);
    }
  for (const auto& [name, schema] : members) EXPECT_TRUE(known.contains(name)) << path << " describes " << name << ", which nothing reads";
}

TEST(OpenApi, DescribesEveryParameterWithItsRange) {
  using namespace net::openai;
  check_parameters("/v1/completions",
                   {completion_parameters(), common_parameters(), sampling_parameters(), structured_output_parameters()});
  check_parameters("/v1/chat/completions",
                   {chat_parameters(), common_parameters(), sampling_parameters(), structured_output_parameters()});
}

}  // namespace
}  // namespace braid::test
