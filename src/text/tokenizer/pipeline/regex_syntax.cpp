// Where the two differ: \h and \v, the members of \s and \w, names of properties, a `+` behind {n,m} (a second repetition, not a possessive
// one), {,n}, (?m) for (?s), and classes within classes with their intersections.
#include "text/tokenizer/pipeline/regex_syntax.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>
#include <vector>

namespace braid::text {
namespace {

constexpr std::string_view kWhiteSpace =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
// Alphabetic, marks, decimal numbers and connectors; below U+0100 Oniguruma has a table of its own.
constexpr std::string_view kWordCharacters =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{b2}\x{b3}\x{b9}\x{bc}-\x{be}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189})";

// Names of properties that PCRE2 knows by another one.
constexpr std::pair<std::string_view, std::string_view> kProperties[] = {
    {"letter", "L"},
    {"uppercaseletter", "Lu"},
    {"lowercaseletter", "Ll"},
    {"titlecaseletter", "Lt"},
    {"modifierletter", "Lm"},
    {"otherletter", "Lo"},
    {"mark", "M"},
    {"nonspacingmark", "Mn"},
    {"spacingmark", "Mc"},
    {"enclosingmark", "Me"},
    {"number", "N"},
    {"decimalnumber", "Nd"},
    {"letternumber", "Nl"},
    {"othernumber", "No"},
    {"punctuation", "P"},
    {"connectorpunctuation", "Pc"},
    {"dashpunctuation", "Pd"},
    {"openpunctuation", "Ps"},
    {"closepunctuation", "Pe"},
    {"initialpunctuation", "Pi"},
    {"finalpunctuation", "Pf"},
    {"otherpunctuation", "Po"},
    {"symbol", "S"},
    {"mathsymbol", "Sm"},
    {"currencysymbol", "Sc"},
    {"modifiersymbol", "Sk"},
    {"othersymbol", "So"},
    {"separator", "Z"},
    {"spaceseparator", "Zs"},
    {"lineseparator", "Zl"},
    {"paragraphseparator", "Zp"},
    {"other", "C"},
    {"control", "Cc"},
    {"format", "Cf"},
    {"alpha", "Alphabetic"},
    {"lower", "Lowercase"},
    {"upper", "Uppercase"},
    {"space", "White_Space"},
    {"digit", "Nd"},
    {"punct", "P"},
    {"xdigit", "ASCII_Hex_Digit"},
};

// Those of properties that are no scripts, under which PCRE2 would look for characters that a script shares with others as well.
constexpr std::string_view kYesOrNo[] = {"any",        "ascii",      "alphabetic",        "lowercase",     "uppercase",
                                         "whitespace", "emoji",      "emojipresentation", "ideographic",   "extendedpictographic",
                                         "idstart",    "idcontinue", "xidstart",          "xidcontinue",   "math",
                                         "dash",       "diacritic",  "hexdigit",          "asciihexdigit", "joincontrol"};

std::string property_name(std::string_view name) {
  std::string plain;
  for (const char c : name)
    if (c != ' ' && c != '_' && c != '-') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const auto& [known, perl] : kProperties)
    if (known == plain) return std::string(perl);
  const bool is_script = plain.size() > 2 && plain.find_first_of(":=&") == std::string::npos &&
                         std::find(std::begin(kYesOrNo), std::end(kYesOrNo), plain) == std::end(kYesOrNo);
  return (is_script ? "sc:" : "") + std::string(name);
}

class SyntaxWriter {
 public:
  explicit SyntaxWriter(std::string_view expression) : in_(expression) {}

  std::string write() {
    while (at_ < in_.size()) step();
    return std::move(out_);
  }

 private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < in_.size() ? in_[at_ + ahead] : '\0'; }

  void step() {
    const char c = in_[at_];
    if (c == '\\') {
      begin_atom();
      out_ += escape(false);
    } else if (c == '[') {
      begin_atom();
      out_ += bracket();
    } else if (c == '(') {
      open_group();
    } else if (c == ')') {
      close_group();
    } else if (c == '{' && write_interval()) {
      return;
    } else {
      if (c != '*' && c != '+' && c != '?' && c != '|') begin_atom();
      out_ += c;
      ++at_;
    }
  }

  void begin_atom() { atom_ = out_.size(); }

  // Copies "(" and, for groups that set options, their letters.
  void open_group() {
    groups_.push_back(out_.size());
    out_ += '(';
    ++at_;
    if (peek() != '?') return;
    std::size_t end = at_ + 1;
    while (end < in_.size() && (std::isalpha(static_cast<unsigned char>(in_[end])) != 0 || in_[end] == '-')) ++end;
    if (end >= in_.size() || (in_[end] != ':' && in_[end] != ')')) return;
    for (; at_ < end; ++at_) out_ += in_[at_] == 'm' ? 's' : in_[at_];
  }

  void close_group() {
    if (!groups_.empty()) {
      atom_ = groups_.back();
      groups_.pop_back();
    }
    out_ += ')';
    ++at_;
  }

  bool write_interval() {
    const std::size_t end = in_.find('}', at_);
    if (end == std::string_view::npos || end == at_ + 1) return false;
    std::string bounds(in_.substr(at_ + 1, end - at_ - 1));
    if (bounds.find_first_not_of("0123456789,") != std::string::npos || bounds == ",") return false;
    if (bounds.front() == ',') bounds.insert(bounds.begin(), '0');
    out_ += '{' + bounds + '}';
    at_ = end + 1;
    if (peek() == '+') {  // PCRE2 would take it for a possessive one
      out_.insert(atom_, "(?:");
      out_ += ')';
    }
    return true;
  }

  std::string property(bool negated) {
    const std::size_t end = in_.find('}', at_);
    if (peek() != '{' || end == std::string_view::npos) return negated ? "\\P" : "\\p";
    std::string_view name = in_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    if (name.starts_with('^')) {
      negated = !negated;
      name.remove_prefix(1);
    }
    return std::string(negated ? "\\P{" : "\\p{") + property_name(name) + '}';
  }

  // A set of characters, within a class or as one.
  static std::string set(std::string_view members, bool in_class) {
    return in_class ? std::string(members) : '[' + std::string(members) + ']';
  }

  // Between a word's character and another one, or the opposite, told by the four beginnings of conditions.
  static std::string word_boundary(std::string_view before, std::string_view after, std::string_view other_before,
                                   std::string_view other_after) {
    const std::string word = set(kWordCharacters, false) + ')';
    std::string out = "(?:";
    out.append(before).append(word).append(after).append(word).append("|");
    return out.append(other_before).append(word).append(other_after).append(word).append(")");
  }

  std::string escape(bool in_class) {
    const char c = peek(1);
    at_ += c == '\0' ? 1 : 2;
    switch (c) {
      case 's':
        return set(kWhiteSpace, in_class);
      case 'S':
        return in_class ? "\\S" : "[^" + std::string(kWhiteSpace) + ']';
      case 'w':
        return set(kWordCharacters, in_class);
      case 'W':
        return in_class ? "\\W" : "[^" + std::string(kWordCharacters) + ']';
      case 'b':
        return in_class ? "\\x{8}" : word_boundary("(?<=", "(?!", "(?<!", "(?=");
      case 'B':
        return in_class ? "\\B" : word_boundary("(?<=", "(?=", "(?<!", "(?!");
      case 'h':
        return set("0-9a-fA-F", in_class);
      case 'H':
        return in_class ? "\\H" : "[^0-9a-fA-F]";
      case 'v':
        return "\\x{b}";
      case 'O':
        return "[\\s\\S]";
      case 'p':
        return property(false);
      case 'P':
        return property(true);
      case 'u':
        return unicode_escape();
      case '\0':
        return "\\";
      default:
        return {'\\', c};
    }
  }

  // \uHHHH
  std::string unicode_escape() {
    std::string digits;
    while (digits.size() < 4 && std::isxdigit(static_cast<unsigned char>(peek())) != 0) digits += in_[at_++];
    return "\\x{" + digits + '}';
  }

  static std::string one_of(const std::string& members, const std::vector<std::string>& others) {
    if (others.empty()) return '[' + members + ']';
    std::string all = members.empty() ? std::string() : '[' + members + ']';
    for (const std::string& other : others) all += (all.empty() ? "" : "|") + other;
    return "(?:" + all + ')';
  }

  // A class from its "[" on. Classes within it are unions, && takes what both sides have: these are written as alternatives and
  // conditions, since PCRE2's classes know neither.
  std::string bracket() {
    ++at_;
    const bool negated = peek() == '^';
    if (negated) ++at_;
    std::string members;
    std::vector<std::string> nested;
    std::string conditions;  // what stands left of &&
    bool plain = true;
    for (bool first = true; at_ < in_.size() && (in_[at_] != ']' || first); first = false) {
      if (in_[at_] == '[' && peek(1) != ':') {
        plain = false;
        nested.push_back(bracket());
      } else if (in_[at_] == '&' && peek(1) == '&') {
        plain = false;
        conditions += "(?=" + one_of(members, nested) + ')';
        members.clear();
        nested.clear();
        at_ += 2;
      } else if (in_[at_] == '[') {
        const std::size_t end = std::min(in_.find(":]", at_ + 2), in_.size() - 2) + 2;
        members += in_.substr(at_, end - at_);
        at_ = end;
      } else if (in_[at_] == '\\') {
        members += escape(true);
      } else {
        members += in_[at_++];
      }
    }
    if (at_ >= in_.size()) return '[' + members;  // PCRE2 tells that its end is missing
    ++at_;
    if (plain) return (negated ? "[^" : "[") + members + ']';
    const std::string whole = conditions + one_of(members, nested);
    return negated ? "(?:(?!" + whole + ")[\\s\\S])" : "(?:" + whole + ')';
  }

  std::string_view in_;
  std::size_t at_ = 0;
  std::string out_;
  std::size_t atom_ = 0;             // where the last atom begins in out_
  std::vector<std::size_t> groups_;  // where open groups begin in out_
};

}  // namespace

std::string perl_syntax(std::string_view expression) { return SyntaxWriter(expression).write(); }

}  // namespace braid::text
