#include "grammar/regex_classes.h"

#include <array>

namespace braid::grammar {
namespace {

// Tens of decimal digits (Nd) beyond ASCII, up to Unicode 17. Python's and Rust's \d matches them.
constexpr std::array<std::uint32_t, 75> kTens = {
    0x0660,  0x06F0,  0x07C0,  0x0966,  0x09E6,  0x0A66,  0x0AE6,  0x0B66,  0x0BE6,  0x0C66,  0x0CE6,  0x0D66,  0x0DE6,  0x0E50,  0x0ED0,
    0x0F20,  0x1040,  0x1090,  0x17E0,  0x1810,  0x1946,  0x19D0,  0x1A80,  0x1A90,  0x1B50,  0x1BB0,  0x1C40,  0x1C50,  0xA620,  0xA8D0,
    0xA900,  0xA9D0,  0xA9F0,  0xAA50,  0xABF0,  0xFF10,  0x104A0, 0x10D30, 0x10D40, 0x11066, 0x110F0, 0x11136, 0x111D0, 0x112F0, 0x11450,
    0x114D0, 0x11650, 0x116C0, 0x116D0, 0x116DA, 0x11730, 0x118E0, 0x11950, 0x11BF0, 0x11C50, 0x11D50, 0x11DA0, 0x11DE0, 0x11F50, 0x16A60,
    0x16AC0, 0x16B50, 0x16D70, 0x1CCF0, 0x1D7CE, 0x1D7D8, 0x1D7E2, 0x1D7EC, 0x1D7F6, 0x1E140, 0x1E2F0, 0x1E4F0, 0x1E5F1, 0x1E950, 0x1FBF0};

}  // namespace

CharacterClass digit_class() {
  const CodePointSet ascii({{'0', '9'}});
  std::vector<CodePointRange> more;
  for (const std::uint32_t zero : kTens) more.push_back({zero, zero + 9});
  return {ascii, ascii.united(CodePointSet(std::move(more)))};
}

// Letters, marks and numbers of all scripts may belong to words. Instead of them it lists the common white space, punctuation and symbols,
// emoji among them, that do not in any dialect: what is in neither is in doubt.
CharacterClass word_class() {
  const CodePointSet ascii({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}});
  const CodePointSet others({{0xA0, 0xA9},     {0xAB, 0xAC},     {0xAE, 0xB1},     {0xB4, 0xB4},       {0xB6, 0xB8},
                             {0xBB, 0xBB},     {0xBF, 0xBF},     {0xD7, 0xD7},     {0xF7, 0xF7},       {0x2000, 0x200A},
                             {0x2010, 0x2029}, {0x202F, 0x203E}, {0x2041, 0x2053}, {0x2055, 0x205F},   {0x20A0, 0x20C0},
                             {0x211E, 0x2123}, {0x2190, 0x2426}, {0x2500, 0x2775}, {0x2794, 0x2B73},   {0x3000, 0x3004},
                             {0x3008, 0x3020}, {0x3030, 0x3030}, {0xFF01, 0xFF0F}, {0xFF1A, 0xFF20},   {0xFF3B, 0xFF3E},
                             {0xFF40, 0xFF40}, {0xFF5B, 0xFF65}, {0xFFE0, 0xFFE6}, {0x1F300, 0x1F6D7}, {0x1F900, 0x1FA53}});
  return {ascii, CodePointSet({{0, 0x7F}}).without(ascii).united(others).complement()};
}

CharacterClass space_class() {
  const CodePointSet ascii({{'\t', '\r'}, {' ', ' '}});
  return {ascii, ascii.united(CodePointSet({{0x1C, 0x1F},
                                            {0x85, 0x85},
                                            {0xA0, 0xA0},
                                            {0x1680, 0x1680},
                                            {0x2000, 0x200A},
                                            {0x2028, 0x2029},
                                            {0x202F, 0x202F},
                                            {0x205F, 0x205F},
                                            {0x3000, 0x3000},
                                            {0xFEFF, 0xFEFF}}))};
}

std::optional<CodePointSet> property_set(std::string_view name) {
  static const CodePointSet upper({{'A', 'Z'}, {0xC0, 0xD6}, {0xD8, 0xDE}, {0x391, 0x3A1}, {0x410, 0x42F}});
  static const CodePointSet lower({{'a', 'z'}, {0xDF, 0xF6}, {0xF8, 0xFF}, {0x3B1, 0x3C9}, {0x430, 0x44F}});
  static const CodePointSet unified({{0x4E00, 0x9FA5}});
  static const CodePointSet pictures({{0x1F300, 0x1F320}, {0x1F330, 0x1F335}, {0x1F400, 0x1F43E}, {0x1F600, 0x1F640}, {0x1F680, 0x1F6C5}});
  if (name == "Lu" || name == "Uppercase_Letter") return upper;
  if (name == "Ll" || name == "Lowercase_Letter") return lower;
  if (name == "L" || name == "Letter" || name == "Alphabetic") return upper.united(lower).united(unified);
  if (name == "N" || name == "Nd" || name == "Number" || name == "Decimal_Number") return CodePointSet({{'0', '9'}});
  if (name == "Extended_Pictographic" || name == "Emoji_Presentation" || name == "Emoji") return pictures;
  if (name == "Emoji_Modifier_Base") return CodePointSet({{0x1F466, 0x1F469}});
  if (name == "Regional_Indicator" || name == "RI") return CodePointSet({{0x1F1E6, 0x1F1FF}});
  if (name == "Emoji_Component" || name == "Emoji_Modifier") return CodePointSet({{0x1F3FB, 0x1F3FF}});
  if (name == "Script=Latin" || name == "sc=Latin") return CodePointSet({{'A', 'Z'}, {'a', 'z'}, {0xC0, 0xD6}, {0xD8, 0xF6}, {0xF8, 0xFF}});
  if (name == "Script=Han" || name == "sc=Han") return unified;
  return std::nullopt;
}

CodePointSet line_terminators() { return CodePointSet({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}); }

}  // namespace braid::grammar
