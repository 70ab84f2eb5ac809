#include <gtest/gtest.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include "grammar/code_points.h"
#include "grammar/text_search.h"
#include "grammar/walk.h"

#include <pcre2.h>
#include <random>

namespace braid::test {
namespace {

using grammar::make_text_search;
using grammar::next_code_point;

ConstraintSpec guided_regex(std::string pattern) { return {ConstraintSpec::Regex{std::move(pattern)}, "guided_regex"}; }

// PCRE2's judgement of whether the whole text matches.
class Judge {
 public:
  explicit Judge(const std::string& pattern) {
    const std::string whole = "\\A(?:" + pattern + ")\\z";
    int error = 0;
    std::size_t offset = 0;
    code_ = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(whole.data()), whole.size(), PCRE2_UTF, &error, &offset, nullptr);
    match_ = pcre2_match_data_create_from_pattern(code_, nullptr);
  }
  ~Judge() {
    pcre2_match_data_free(match_);
    pcre2_code_free(code_);
  }
  Judge(const Judge&) = delete;
  Judge& operator=(const Judge&) = delete;

  bool matches(const std::string& text) const {
    return pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0, 0, match_, nullptr) > 0;
  }

 private:
  pcre2_code* code_;
  pcre2_match_data* match_;
};

const char* const kPatterns[] = {"",
                                 "a",
                                 "abc|abd|x",
                                 "a*b+c?",
                                 "(ab|a)(bc|c)?",
                                 "[a-c]{2,4}",
                                 "[^a-c]+",
                                 "(a|b)*abb",
                                 "a{3}",
                                 "a{2,}",
                                 "(?:ab){0,3}c",
                                 "(?<name>a+)b",
                                 "\\d+(\\.\\d+)?",
                                 "\\w+\\s\\w+",
                                 "\\P{Nd}[^\\p{L}\\p{N}_]\\S",
                                 "[\\w.-]+@[\\w-]+\\.com",
                                 "x.y",
                                 "é+|中",
                                 "[à-ü]+",
                                 "[\\x41-\\x43]\\x{e9}?",
                                 "a+?b*?",
                                 "((a|b)(c|d)){1,2}",
                                 "a{0,2}b",
                                 "\\[\\]\\{\\}\\.\\\\",
                                 "(|a)b",
                                 "(a?){3}",
                                 "(a*)*b",
                                 "[-a]+",
                                 "[a\\-z]+",
                                 "\\t\\n",
                                 "[^\\n]{2,60}!",
                                 "(a|ab|abc){2,90}c",
                                 "(0|[1-9][0-9]*)",
                                 "a|",
                                 "(?:)",
                                 "[\\d\\s]+",
                                 "[^\\s]+",
                                 "a.{60,70}b"};

// How PCRE2 writes what others write so.
const std::pair<std::string, std::string> kWrittenOtherwise[] = {
    {"\\x{e9}", "\\u00e9"}, {"\\P{Nd}", "\\D"}, {"[^\\p{L}\\p{N}_]", "\\W"}, {"a{0,2}", "a{,2}"}};

TEST(Regex, AgreesWithPcreOnRandomTexts) {
  static const std::vector<std::string> kPieces = {"a", "b",  "c", "d",  "x",   "y",    "z",  "A",  "B", "0",  "1",
                                                   "9", ".",  "-", "@",  " ",   "\n",   "\t", "!",  "[", "]",  "{",
                                                   "}", "\\", "_", "ab", "abc", ".com", "é",  "中", "ü", "com"};
  std::mt19937 random(5);
  for (const std::string pattern : kPatterns) {
    std::string ours = pattern;
    for (const auto& [theirs, written] : kWrittenOtherwise)
      if (const auto at = ours.find(theirs); at != std::string::npos) ours.replace(at, theirs.size(), written);
    const auto constraint = compile_or_die(guided_regex(ours));
    const Judge judge(pattern);
    std::size_t accepted = 0;
    for (int i = 0; i < 200; ++i) {
      std::string text;
      if (i % 2 == 0) {
        for (auto n = random() % 7; n > 0; --n) text += kPieces[random() % kPieces.size()];
      } else {  // a text of the language, perhaps spoilt
        const Walk walk = random_walk(*constraint, random, random() % 40);
        ASSERT_TRUE(walk.ended) << pattern;
        text = walk.text;
        if (i % 4 == 1 && !text.empty()) text.insert(random() % text.size(), kPieces[random() % 26]);
      }
      const bool ours_accepts = accepts(*constraint, text);
      ASSERT_EQ(ours_accepts, judge.matches(text)) << pattern << " on " << text;
      accepted += ours_accepts ? 1 : 0;
    }
    EXPECT_GT(accepted, 45U) << pattern;
  }
}

TEST(Regex, TakesAnchorsAtItsEndsForGranted) {
  const auto constraint = compile_or_die(guided_regex("^ab$|^c$"));
  EXPECT_TRUE(accepts(*constraint, "ab"));
  EXPECT_TRUE(accepts(*constraint, "c"));
  EXPECT_FALSE(accepts(*constraint, "abc"));
}

// ECMA-262 has four line terminators.
TEST(Regex, ADotMatchesNoLineTerminator) {
  const auto dot = compile_or_die(guided_regex("a.b"));
  const auto pattern = compile_or_die(schema_spec(R"({"type":"string","pattern":"^a.b$"})"));
  for (const char* end : {"\n", "\r", "\xE2\x80\xA8", "\xE2\x80\xA9"}) {
    EXPECT_FALSE(accepts(*dot, std::string("a") + end + "b")) << end;
    EXPECT_FALSE(accepts(*pattern, std::string("\"a") + end + "b\"")) << end;
  }
  for (const char* other : {"x", "\xC2\x85", "\xE2\x80\xA7", "\xE2\x80\xAA"}) {
    EXPECT_TRUE(accepts(*dot, std::string("a") + other + "b")) << other;
    EXPECT_TRUE(accepts(*pattern, std::string("\"a") + other + "b\"")) << other;
  }
}

// The dialects disagree on which white space there is beyond ASCII's: a negated class matches none of it.
TEST(Regex, ANegatedClassLeavesOutAllWhiteSpace) {
  const auto no_space = compile_or_die(guided_regex("[^\\s]"));
  const auto only_space = compile_or_die(guided_regex("[^\\S]"));
  for (const char* doubtful : {"\x1C", "\xC2\x85", "\xC2\xA0", "\xE2\x80\xA8", "\xE3\x80\x80"}) {
    EXPECT_FALSE(accepts(*no_space, doubtful)) << doubtful;
    EXPECT_FALSE(accepts(*only_space, doubtful)) << doubtful;
  }
  EXPECT_TRUE(accepts(*no_space, "a"));
  EXPECT_TRUE(accepts(*no_space, "\xC3\xA9"));
  EXPECT_TRUE(accepts(*only_space, " "));
  EXPECT_FALSE(accepts(*only_space, "a"));
  EXPECT_FALSE(accepts(*compile_or_die(schema_spec(R"({"type":"string","pattern":"^[^\\s]+$"})")), "\"\xC2\xA0\""));
}

// In Python é belongs to a word and U+0660 is a digit, in JavaScript neither.
TEST(Regex, AnOppositeLeavesOutWhatIsInDoubt) {
  for (const char* doubtful : {"\xC3\xA9", "\xE4\xB8\xAD", "\xD9\xA0", "\xCC\x81", "\xE2\x80\xBF"})
    for (const char* pattern : {"\\W", "[\\W]", "[^\\w]", "\\w", "[^\\W]"})
      EXPECT_FALSE(accepts(*compile_or_die(guided_regex(pattern)), doubtful)) << pattern << doubtful;
  for (const char* pattern : {"\\D", "[^\\d]", "\\d", "[^\\D]"})
    EXPECT_FALSE(accepts(*compile_or_die(guided_regex(pattern)), "\xD9\xA0")) << pattern;
  for (const char* pattern : {"\\W", "[^\\w]", "[^\\w\\d]"})
    for (const char* sure : {" ", "-", "\n", "\xE2\x80\x94", "\xF0\x9F\xA6\x8A", "\xEF\xBC\x8C"})
      EXPECT_TRUE(accepts(*compile_or_die(guided_regex(pattern)), sure)) << pattern << sure;
  EXPECT_TRUE(accepts(*compile_or_die(guided_regex("\\D+[^\\W]")), "\xC3\xA9_\xE4\xB8\xADz"));
}

TEST(Regex, ACountWithoutItsLeastIsPythonsButInASchema) {
  const auto python = compile_or_die(guided_regex("a{,2}b{,}c{,"));
  for (const char* text : {"c{,", "aac{,", "abbbbc{,"}) EXPECT_TRUE(accepts(*python, text)) << text;
  for (const char* text : {"aaac{,", "a{,2}b{,}c{,"}) EXPECT_FALSE(accepts(*python, text)) << text;
  const auto schema = compile_or_die(schema_spec(R"({"type":"string","pattern":"^a{,2}$"})"));
  EXPECT_TRUE(accepts(*schema, "\"a{,2}\""));
  EXPECT_FALSE(accepts(*schema, "\"aa\""));
}

TEST(Regex, RefusesWhatIsNotSupportedWithItsPosition) {
  for (const auto& [pattern, position] : std::initializer_list<std::pair<const char*, const char*>>{
           {"a(?=b)", "2"},      {"a(?!b)", "2"}, {"(?<=a)b", "3"}, {"(a)\\1", "4"}, {"a\\b", "2"}, {"\\p{Nope}", "2"},
           {"(a", "2"},          {"a)", "1"},     {"[a", "2"},      {"*a", "0"},     {"a**", "3"},  {"a++", "2"},
           {"a{3,1}", "6"},      {"[b-a]", "4"},  {"a^b", "1"},     {"(a$)", "2"},   {"\\", "1"},   {"\\u12", "4"},
           {"[[:alpha:]]", "1"}, {"(?i)a", "1"},  {"\xFF", "0"},    {"[]a]", "1"},   {"{2}a", "3"}, {"a|{,3}", "6"}}) {
    const auto refused = toy_compiler().compile(guided_regex(pattern));
    ASSERT_FALSE(refused) << pattern;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(refused.error().param, "guided_regex");
    EXPECT_NE(refused.error().message.find(std::string("position ") + position), std::string::npos)
        << pattern << ": " << refused.error().message;
  }
}

TEST(Regex, RefusesWhatWouldGrowTooLarge) {
  std::string exponential = "(a|b)*a";
  for (int i = 0; i < 20; ++i) exponential += "(a|b)";
  EXPECT_FALSE(toy_compiler().compile(guided_regex(exponential)));
  EXPECT_FALSE(toy_compiler().compile(guided_regex("((a?){1000}){1000}")));
  EXPECT_FALSE(toy_compiler().compile(guided_regex("(((((a?|b){9,99}){9,99}){9,99}){9,99}){9,99}")));
}

// Bytes up to the end of the first match of `pattern` in `text`, given a character at a time; -1: there is none.
int match_end(std::string_view pattern, std::string_view text) {
  const auto search = make_text_search(pattern).value();
  TextSearch::State state = 0;
  std::uint32_t point = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    next_code_point(text, at, point);
    const auto end = search->feed(state, text.substr(begin, at - begin));
    if (end) return static_cast<int>(begin + *end);
  }
  return -1;
}

TEST(TextSearch, FindsTheFirstMatchInTextAsItComes) {
  EXPECT_EQ(match_end("\\d{3}", "ab12c1234"), 8);
  EXPECT_EQ(match_end("END|STOP", "so STand STOP END"), 13);
  EXPECT_EQ(match_end("a+b", "aaab"), 4);
  EXPECT_EQ(match_end("a+", "xaaa"), 2);  // at the first end that there is
  EXPECT_EQ(match_end("^x", "ax"), -1);
  EXPECT_EQ(match_end("^ax", "ax"), 2);
  EXPECT_EQ(match_end("b$", "abc"), 2);
  EXPECT_EQ(match_end("[é-ü]!", "aé ü!b"), 7);
  EXPECT_EQ(match_end("(foo)+bar", "foofoobaz foobar"), 16);
  EXPECT_EQ(match_end("q", ""), -1);
  const auto whole = make_text_search("b.d").value();
  TextSearch::State state = 0;
  EXPECT_EQ(whole->feed(state, "abcde"), 4U);  // within one piece
}

TEST(TextSearch, RefusesWhatItCannotFollow) {
  for (const std::string_view pattern : {"(", "a*", "", "(a)\\1", "a{0,5000}[ab]{3000}c[ab]{3000}"})
    EXPECT_FALSE(make_text_search(pattern)) << pattern;
}

}  // namespace
}  // namespace braid::test
