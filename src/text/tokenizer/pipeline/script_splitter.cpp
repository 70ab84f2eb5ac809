// "UnicodeScripts": cuts where another script begins; spaces stay with what is before them.
#include "text/tokenizer/pipeline/script_runs.h"
#include "text/tokenizer/pipeline/splitter.h"

#include <algorithm>
#include <iterator>

namespace braid::text {
namespace {

std::uint8_t script_of(char32_t code) {
  const auto after = std::upper_bound(std::begin(kScriptRuns), std::end(kScriptRuns), code,
                                      [](char32_t value, const ScriptRun& run) { return value < run.first; });
  return std::prev(after)->script;
}

// What is of no script before the first that is one is no piece at all: so it is in the library.
void find_scripts(std::string_view text, std::vector<TextSpan>& spans) {
  std::uint8_t last = 0;
  bool any = false;  // a piece has begun
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text, at);
    const std::uint8_t script = script_of(c.code);
    if (script != 0 && script != last) {
      spans.push_back({at, at, false});
      any = true;
    }
    if (script != 0) last = script;
    at += c.size;
    if (any) spans.back().end = at;
  }
}

class ScriptSplitter final : public Splitter {
 public:
  void split(PieceList& list) const override { cut_pieces(list, find_scripts); }
};

}  // namespace

std::unique_ptr<const Splitter> make_script_splitter() { return std::make_unique<ScriptSplitter>(); }

}  // namespace braid::text
