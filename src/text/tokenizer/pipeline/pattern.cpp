#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/tokenizer/pipeline/pattern.h"

#include "text/tokenizer/pipeline/regex_syntax.h"

#include <array>
#include <fmt/format.h>
#include <pcre2.h>
#include <utility>

namespace braid::text {
namespace {

// Expressions whose matches a scanner finds too. Each of them leaves no character unmatched.
struct KnownExpression {
  std::string_view expression;
  PreTokenizer rules;
};
constexpr KnownExpression kKnownExpressions[] = {
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", PreTokenizer::kGpt2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     PreTokenizer::kLlama3},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     PreTokenizer::kQwen2},
};

std::string pcre2_message(int code) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

}  // namespace

struct Pattern::Compiled {
  pcre2_code* code = nullptr;

  explicit Compiled(pcre2_code* compiled) : code(compiled) {}
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() { pcre2_code_free(code); }
};

Pattern::Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

Pattern Pattern::from_text(std::string text) {
  if (text.empty()) {
    auto anywhere = from_regex("", RegexDialect::kPerl);
    return std::move(*anywhere);
  }
  Pattern pattern;
  pattern.text_ = std::move(text);
  return pattern;
}

Result<Pattern> Pattern::from_regex(std::string_view expression, RegexDialect dialect) {
  Pattern pattern;
  for (const KnownExpression& known : kKnownExpressions)
    if (known.expression == expression) pattern.words_ = known.rules;
  pattern.digits_ = digit_groups_of(expression);
  if (pattern.words_ || pattern.digits_) return pattern;
  const std::string translated = dialect == RegexDialect::kOniguruma ? perl_syntax(expression) : std::string(expression);
  int error = 0;
  PCRE2_SIZE place = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                                   PCRE2_UTF | PCRE2_UCP | (dialect == RegexDialect::kOniguruma ? PCRE2_MULTILINE : PCRE2_DOLLAR_ENDONLY),
                                   &error, &place, nullptr);
  if (code == nullptr)
    return Error{
        ErrorCode::kUnsupported, fmt::format("the regular expression '{}' cannot be used: {}", expression, pcre2_message(error)), {}};
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // where it fails, matching is slower
  pattern.compiled_ = std::make_unique<const Compiled>(code);
  return pattern;
}

struct Pattern::Searcher::Buffers {
  pcre2_match_data* match = nullptr;
  pcre2_match_context* context = nullptr;
  pcre2_jit_stack* stack = nullptr;

  Buffers() = default;
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  ~Buffers() {
    pcre2_match_data_free(match);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
  }
};

Pattern::Searcher::Searcher(const Pattern& pattern) : pattern_(pattern), buffers_(std::make_unique<Buffers>()) {
  if (pattern.compiled_ == nullptr) return;
  constexpr std::size_t kFirstStack = 32 << 10;
  constexpr std::size_t kLargestStack = 8 << 20;
  constexpr std::uint32_t kMostSteps = 1'000'000;  // of one match: far more than any tokenizer's expression takes
  buffers_->match = pcre2_match_data_create(1, nullptr);
  buffers_->context = pcre2_match_context_create(nullptr);
  pcre2_set_match_limit(buffers_->context, kMostSteps);
  buffers_->stack = pcre2_jit_stack_create(kFirstStack, kLargestStack, nullptr);
  pcre2_jit_stack_assign(buffers_->context, nullptr, buffers_->stack);
}

Pattern::Searcher::~Searcher() = default;

bool Pattern::Searcher::match(std::string_view text, std::size_t from, TextSpan& found) {
  if (!pattern_.text_.empty()) {
    const std::size_t at = text.find(pattern_.text_, from);
    found = {at, at + pattern_.text_.size(), true};
    return at != std::string_view::npos;
  }
  const auto search = [&](std::uint32_t options) {
    return pcre2_match(pattern_.compiled_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from, PCRE2_NO_UTF_CHECK | options,
                       buffers_->match, buffers_->context);
  };
  int count = search(0);
  if (count == PCRE2_ERROR_JIT_STACKLIMIT) count = search(PCRE2_NO_JIT);
  if (count < 0) return false;
  const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(buffers_->match);
  found = {bounds[0], bounds[1], true};
  return bounds[0] <= bounds[1];
}

void Pattern::Searcher::find_words(std::string_view text, std::vector<TextSpan>& spans) {
  words_.clear();
  split_words(*pattern_.words_, text, words_);
  for (const std::string_view word : words_) {
    const auto begin = static_cast<std::size_t>(word.data() - text.data());
    spans.push_back({begin, begin + word.size(), true});
  }
}

// An empty match right behind another match does not count; the search then goes on one character further.
void Pattern::Searcher::find(std::string_view text, std::vector<TextSpan>& spans) {
  if (pattern_.words_) return find_words(text, spans);
  if (pattern_.digits_) return find_digit_groups(*pattern_.digits_, text, spans);
  std::size_t begin = 0;
  std::optional<std::size_t> last_end;
  TextSpan found;
  for (std::size_t from = 0; from <= text.size() && match(text, from, found);) {
    if (found.begin == found.end && last_end == found.end) {
      if (from == text.size()) break;
      from += decode_utf8(text, from).size;
      continue;
    }
    if (begin < found.begin) spans.push_back({begin, found.begin, false});
    spans.push_back(found);
    begin = from = found.end;
    last_end = found.end;
  }
  if (begin < text.size()) spans.push_back({begin, text.size(), false});
}

std::optional<Pattern> read_pattern(const ConfigNode& node) {
  const auto member = node.find("pattern");
  if (!member || (!member->find("String") && !member->find("Regex"))) {
    node.fail(ErrorCode::kBadFile, fmt::format("'{}.pattern' is neither {{\"String\": …}} nor {{\"Regex\": …}}", node.path()));
    return std::nullopt;
  }
  if (member->find("String")) return Pattern::from_text(member->text("String"));
  auto pattern = Pattern::from_regex(member->text("Regex"));
  if (pattern) return std::move(*pattern);
  node.fail(pattern.error().code, fmt::format("'{}.pattern': {}", node.path(), pattern.error().message));
  return std::nullopt;
}

}  // namespace braid::text
