#include "grammar/walk.h"

#include <array>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <string>

namespace braid::test {
namespace {

TEST(JsonObject, AcceptsObjectsOnly) {
  const auto constraint = compile_or_die({ConstraintSpec::JsonObject{}, "response_format"});
  for (const char* text : {"{}", "{ }", R"({"a":1})", R"({"a": [1, 2.5e-3, {"b": null}], "c": "\u00e9\ud83d\ude00\n"})",
                           "{\n  \"a\": true\n}", R"({"é":"中"})"})
    EXPECT_TRUE(accepts(*constraint, text)) << text;
  for (const char* text :
       {"", "[]", "1", R"({"a"})", R"({"a":01})", R"({"a":1,})", R"({"a":"\x"})", R"({"a":"\ud83d"})", R"({a:1})", "{\"a\":\"\n\"}",
        "{\"a\":\"\xC3\"}", "{\"a\":\"\xED\xA0\x80\"}", R"({"a":1} )", R"({"a":+1})", R"({"a":.5})", R"({"a":tru})"})
    EXPECT_FALSE(accepts(*constraint, text)) << text;
}

TEST(JsonSchema, HonoursTypesAndOrder) {
  const auto constraint = compile_or_die(schema_spec(
      R"({"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name","age"],"additionalProperties":false})"));
  EXPECT_TRUE(accepts(*constraint, R"({"name":"x","age":3})"));
  EXPECT_FALSE(accepts(*constraint, R"({"age":3,"name":"x"})"));
  EXPECT_FALSE(accepts(*constraint, R"({"name":"x"})"));
  EXPECT_FALSE(accepts(*constraint, R"({"name":"x","age":3.5})"));
  EXPECT_FALSE(accepts(*constraint, R"({"name":"x","age":3,"more":1})"));
}

// A function without parameters is declared so.
TEST(JsonSchema, InventsNoMembersBesideNoProperties) {
  const auto closed = compile_or_die(schema_spec(R"({"type":"object","properties":{}})"));
  EXPECT_TRUE(accepts(*closed, "{}"));
  EXPECT_FALSE(accepts(*closed, R"({"a":1})"));
  const auto open = compile_or_die(schema_spec(R"({"type":"object","properties":{},"additionalProperties":true})"));
  EXPECT_TRUE(accepts(*open, R"({"a":1})"));
}

TEST(JsonSchema, ABranchWhoseValuesAreOfAnotherTypeIsLeftOut) {
  for (const char* schema :
       {R"({"type":"string","anyOf":[{"enum":["a"]},{"enum":[null,1]}]})", R"({"type":"string","oneOf":[{"const":"a"},{"const":null}]})",
        R"({"enum":["a","b"],"anyOf":[{"const":"a"},{"const":"c"}]})"}) {
    const auto constraint = compile_or_die(schema_spec(schema));
    EXPECT_TRUE(accepts(*constraint, R"("a")")) << schema;
    for (const char* other : {"null", "1", R"("b")", R"("c")"}) EXPECT_FALSE(accepts(*constraint, other)) << schema << other;
  }
  EXPECT_FALSE(toy_compiler().compile(schema_spec(R"({"type":"string","anyOf":[{"const":1}]})")));
  // A length is about texts only.
  EXPECT_TRUE(accepts(*compile_or_die(schema_spec(R"({"maxLength":3,"anyOf":[{"const":null},{"type":"string"}]})")), "null"));
}

std::string union_of(int branches, const std::string& extra, bool by_reference) {
  std::string text = R"({"anyOf":[)";
  std::string defs;
  const auto kind = [&](int i) {
    return fmt::format(R"({{"type":"object","properties":{{"kind":{{"const":"k{:03}"}},"title":{{"type":"string"}},)"
                       R"("count":{{"type":"integer"}}{}}},)"
                       R"("required":["kind","title","count"],"additionalProperties":false}})",
                       i, extra);
  };
  for (int i = 0; i < branches; ++i) {
    text += (i > 0 ? "," : "") + (by_reference ? fmt::format(R"({{"$ref":"#/$defs/d{}"}})", i) : kind(i));
    defs += fmt::format(R"({}"d{}":{})", i > 0 ? "," : "", i, kind(i));
  }
  return text + R"(],"$defs":{)" + defs + "}}";
}

// Members as the branches may have besides: none, the union again, a choice with it, and the union written out.
TEST(JsonSchema, HonoursEachBranchOfALargeUnion) {
  for (const int branches : {20, 40, 60, 64, 100, 200}) {
    std::string written_out = R"(,"next":{"anyOf":[{"type":"null"})";
    for (int i = 0; i < branches; ++i) written_out += fmt::format(R"(,{{"$ref":"#/$defs/d{}"}})", i);
    written_out += "]}";
    if (branches > 40) written_out.clear();  // the first branch nests the second and so on
    for (const std::string& extra : {std::string(), std::string(R"(,"next":{"$ref":"#"})"),
                                     std::string(R"(,"next":{"anyOf":[{"$ref":"#"},{"type":"null"}]})"), written_out}) {
      const auto constraint = compile_or_die(schema_spec(union_of(branches, extra, true)));
      for (const int branch : {0, 1, branches / 2, branches - 1}) {
        const std::string text = fmt::format(R"({{"kind":"k{:03}","title":"a","count":1}})", branch);
        EXPECT_TRUE(accepts(*constraint, text)) << branches << " " << text;
        const std::string nested = fmt::format(R"({{"kind":"k{:03}","title":"a","count":1,"next":{}}})", branch, text);
        EXPECT_EQ(accepts(*constraint, nested), !extra.empty()) << branches << extra.substr(0, 60) << " " << nested;
      }
      EXPECT_FALSE(accepts(*constraint, fmt::format(R"({{"kind":"k{:03}","title":"a","count":1}})", branches)));
    }
  }
}

TEST(JsonSchema, ConstantsKeepAllTheirDigits) {
  for (const char* number :
       {"9223372036854775807", "-9223372036854775808", "9223372036854775808", "-12345678901234567890123", "1.5", "1e+18", "1e+30"}) {
    const auto constraint = compile_or_die(schema_spec(std::string(R"({"enum":[)") + number + "]}"));
    EXPECT_TRUE(accepts(*constraint, number)) << number;
    EXPECT_FALSE(accepts(*constraint, "9223372036854775809")) << number;
  }
  EXPECT_TRUE(accepts(*compile_or_die(schema_spec(R"({"enum":[{"a":[1,{"b":18446744073709551615}]}]})")),
                      R"({"a":[1,{"b":18446744073709551615}]})"));
  EXPECT_TRUE(accepts(*compile_or_die(schema_spec(R"({"type":"integer","enum":["a",12345678901234567890]})")), "12345678901234567890"));
  EXPECT_FALSE(toy_compiler().compile(schema_spec(R"({"enum":[9223372036854775808],"maximum":9223372036854775807})")));
}

// Bounds have any number of digits. Where validators that read doubles may take an excluded bound for its neighbours, these are left
// out, unless nothing else is between the bounds.
TEST(JsonSchema, HonoursBoundsOfLargeIntegers) {
  for (const auto& [bound, within, beyond] : std::initializer_list<std::array<const char*, 3>>{
           {R"("minimum":1e19)", "10000000000000010000", "9999999999999999999"},
           {R"("minimum":9223372036854775808)", "9223372036854785807", "9223372036854775807"},
           {R"("exclusiveMinimum":9223372036854775807)", "9223372036854785807", "9223372036854775807"},
           {R"("maximum":-1e19)", "-10000000000000010000", "-9999999999999999999"},
           {R"("exclusiveMaximum":-9223372036854775808)", "-9223372036854785808", "-9223372036854775808"},
           {R"("minimum":1180591620717411303424)", "1180591620717412303424", "1180591620717411303423"},
           {R"("maximum":123456789012345678901234567890)", "5", "123456789012345678901234567891"},
           {R"("minimum":9223372036854775809,"maximum":9223372036854775810)", "9223372036854775810", "9223372036854775808"},
           {R"("minimum":9223372036854775809,"maximum":9223372036854775810)", "9223372036854775809", "9223372036854775811"},
           {R"("exclusiveMinimum":9223372036854775809,"exclusiveMaximum":9223372036854775811)", "9223372036854775810",
            "9223372036854775811"},
           {R"("exclusiveMinimum":-36893488147419103233,"maximum":-36893488147419103232)", "-36893488147419103232",
            "-36893488147419103233"},
           {R"("exclusiveMinimum":9007199254740993,"exclusiveMaximum":9007199254740995)", "9007199254740994", "9007199254740995"},
           {R"("minimum":123456789012345678901234567890,"maximum":123456789012345678901234567891)", "123456789012345678901234567891",
            "123456789012345678901234567892"},
           {R"("minimum":18446744073709551615,"maximum":18446744073709551617,"multipleOf":2)", "18446744073709551616",
            "18446744073709551617"}}) {
    const auto constraint = compile_or_die(schema_spec(fmt::format(R"({{"type":"integer",{}}})", bound)));
    EXPECT_TRUE(accepts(*constraint, within)) << bound;
    EXPECT_FALSE(accepts(*constraint, beyond)) << bound;
  }
  for (const char* both : {R"({"type":"integer","minimum":9007199254740997,"exclusiveMinimum":9007199254740995})",
                           R"({"allOf":[{"type":"integer","minimum":9007199254740996},{"minimum":9007199254740997}]})"}) {
    const auto constraint = compile_or_die(schema_spec(both));
    EXPECT_FALSE(accepts(*constraint, "9007199254740996")) << both;
    EXPECT_TRUE(accepts(*constraint, "9007199254740997")) << both;
  }
  EXPECT_TRUE(accepts(*compile_or_die(schema_spec(R"({"type":"integer","minimum":9223372036854775807})")), "9223372036854775807"));
  EXPECT_TRUE(accepts(*compile_or_die(schema_spec(R"({"type":"integer","maximum":1e19})")), "5"));
}

void expect_accepts(const char* schema, std::initializer_list<const char*> good, std::initializer_list<const char*> bad) {
  const auto constraint = compile_or_die(schema_spec(schema));
  for (const char* text : good) EXPECT_TRUE(accepts(*constraint, text)) << schema << " " << text;
  for (const char* text : bad) EXPECT_FALSE(accepts(*constraint, text)) << schema << " " << text;
}

// What zod writes for whole numbers: a list of many of them has room in one automaton.
TEST(JsonSchema, WholeNumbersWithWideBoundsTakeFewStates) {
  const std::string integer = R"({"type":"integer","minimum":-9007199254740991,"maximum":9007199254740991})";
  expect_accepts(integer.c_str(),
                 {"0", "7", "-7", "10", "99", "1234567", "999999999999999", "9007199254740991", "-9007199254740991", "-100000000000000"},
                 {"9007199254740992", "-9007199254740992", "10000000000000000", "01", "-01", "-0", "00"});
  const std::string many = R"({"type":"array","minItems":2,"maxItems":200,"items":)" + integer + "}";
  expect_accepts(many.c_str(), {"[1, -9007199254740991]", "[12,13,14]"}, {"[1]", "[1, 9007199254740992]"});
}

// They may have more digits than are read: what is made is on the right side of the bound as it was written.
TEST(JsonSchema, HonoursBoundsWithLongFractions) {
  expect_accepts(R"({"type":"number","maximum":0.1234567890123456789})", {"0.1234567890123456", "0.1"},
                 {"0.12345678901234568", "0.1234567890123456790"});
  expect_accepts(R"({"type":"number","minimum":-0.1234567890123456789})", {"-0.1234567890123456", "0"}, {"-0.12345678901234568"});
  expect_accepts(R"({"type":"number","minimum":3.14159265358979323846,"maximum":3.2})", {"3.15", "3.1416"}, {"3.141592653589793"});
  expect_accepts(R"({"type":"number","maximum":1e17,"minimum":1e-20})", {"100000000000000000", "0.00000000000000000001"}, {});
}

TEST(JsonSchema, UnknownFormatsAndKeywordsAreAnnotations) {
  expect_accepts(R"({"type":"string","format":"house-number","unknown":{"a":1},"x-own":2,"nullable":true})", {R"("")", R"("12b")"}, {"1"});
  expect_accepts(R"({"format":"house-number"})", {"1", R"("a")"}, {});
  expect_accepts(R"({"type":"string","format":"uuid","maxLength":2})", {R"("ab")"}, {R"("abc")"});
  expect_accepts(R"({"type":"string","format":"date","pattern":"^x"})", {R"("xyz")"}, {R"("2024-01-01")"});
}

TEST(JsonSchema, PatternsAndLengthsBindTogether) {
  expect_accepts(R"({"type":"string","pattern":"^[a-z]+$","minLength":2,"maxLength":3})", {R"("ab")", R"("abc")"},
                 {R"("a")", R"("abcd")", R"("a1")"});
  expect_accepts(R"({"allOf":[{"pattern":"^ab"},{"pattern":"yz$"}],"type":"string"})", {R"("abyz")", R"("ab--yz")"},
                 {R"("abz")", R"("xabyz")"});
  expect_accepts(R"({"type":"string","pattern":"a\"","maxLength":3})", {R"("a\"")", R"("xa\"")"}, {R"("xxa\"")"});
}

TEST(JsonSchema, PatternsLookAhead) {
  expect_accepts(R"({"type":"string","pattern":"^(?!13)\\d{2}$"})", {R"("12")", R"("31")"}, {R"("13")"});
  expect_accepts(R"({"type":"string","pattern":"^(?=.*[A-Z])(?=.*[0-9])[A-Za-z0-9]{3}$"})", {R"("aB1")", R"("1xZ")"},
                 {R"("abc")", R"("AB")"});
  expect_accepts(R"({"type":"string","pattern":"^P(?:(?!.*W)(?=\\d|T\\d)(\\d+Y)?(T(?=\\d)(\\d+H)?)?)$"})", {R"("P1Y")", R"("PT2H")"},
                 {R"("P")", R"("P1YT")"});
  // What some dialect matches must not be there either: `.` beyond a line's end.
  expect_accepts(R"({"type":"string","pattern":"^(?!.*b)[^c]*$"})", {R"("a\n")"}, {R"("a\nb")", R"("b")"});
}

TEST(JsonSchema, MultiplesAndDivisors) {
  expect_accepts(R"({"type":"integer","multipleOf":7,"minimum":-20,"maximum":100})", {"0", "7", "-14", "98"}, {"1", "-21", "105", "-0"});
  expect_accepts(R"({"type":"number","multipleOf":0.25,"exclusiveMinimum":0,"maximum":1})", {"0.25", "1.00", "0.50"},
                 {"0.00", "0.3", "1.25"});
  expect_accepts(R"({"type":"integer","multipleOf":1.5,"maximum":9})", {"0", "3", "-6"}, {"1", "12"});
}

TEST(JsonSchema, WordsOfEarlierDrafts) {
  expect_accepts(R"({"type":"array","items":[{"type":"null"},{"type":"integer"}],"additionalItems":{"const":"x"},"minItems":2})",
                 {"[null, 1]", R"([null, 1, "x"])"}, {"[null]", R"([null, "x"])", R"([null, 1, 2])"});
  expect_accepts(R"({"type":"integer","minimum":3,"exclusiveMinimum":true})", {"4"}, {"3"});
  expect_accepts(R"({"$id":"T","type":"object","properties":{"next":{"$ref":"T"}}})", {R"({"next":{"next":{}}})"}, {R"({"next":1})"});
}

TEST(JsonSchema, NamesOfPropertiesAreListedOrMatched) {
  expect_accepts(R"({"type":"object","propertyNames":{"enum":["a","b"]},"additionalProperties":{"type":"integer"},"required":["b"]})",
                 {R"({"b":1})", R"({"b":1, "a":2})"}, {"{}", R"({"a":2})", R"({"b":1, "c":1})", R"({"b":"x"})"});
  expect_accepts(R"({"type":"object","properties":{"aa":{},"b":{}},"propertyNames":{"minLength":2}})", {R"({"aa":1})"}, {R"({"b":1})"});
  expect_accepts(R"({"type":"object","properties":{"x1":{"type":"integer"}},"patternProperties":{"^x":{"minimum":5},"^y":{"type":"null"}},)"
                 R"("additionalProperties":false})",
                 {R"({"x1":5})", R"({"y":null, "y2":null})", R"({"x2":7})"}, {R"({"x1":4})", R"({"y":1})", R"({"z":1})"});
  expect_accepts(R"({"type":"object","properties":{"a":{},"b":{}},"minProperties":1,"maxProperties":1})", {R"({"a":1})"}, {"{}"});
}

// What an answer may be under tools that are strict: free text, and calls where the marker stands.
TEST(FreeText, IsBoundFromAMarkerOn) {
  using Spec = ConstraintSpec;
  const auto sequence = [](std::vector<Spec> parts) { return Spec{Spec::Sequence{std::move(parts)}, ""}; };
  const Spec call =
      sequence({{Spec::FreeUntil{"<call>"}, ""}, schema_spec(R"({"type":"integer","minimum":3})"), {Spec::Literal{"</call>"}, ""}});
  const auto constraint = compile_or_die(sequence({{Spec::Repeat{{call}, 0, -1}, ""}, {Spec::FreeWithout{"<call>"}, ""}}));
  for (const char* text : {"", "any < text", "<cal", "a<call>3</call>", "<call>3</call>b<<call>44</call>c<call"})
    EXPECT_TRUE(accepts(*constraint, text)) << text;
  for (const char* text : {"a<call>", "a<call>2</call>", "<call>3</call><call>", "<call>3"})
    EXPECT_FALSE(accepts(*constraint, text)) << text;
  // Before the marker every token may come, but other control tokens and the byte that stands for them here.
  const auto state = constraint->start({});
  const std::size_t free = allowed_tokens(*state).size();
  for (const char c : std::string_view("text <")) state->accept(2 + c);
  EXPECT_EQ(free, toy_tokens().size() - 2);
  EXPECT_EQ(allowed_tokens(*state).size(), free);
}

}  // namespace
}  // namespace braid::test
