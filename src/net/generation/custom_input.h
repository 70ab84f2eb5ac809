// The text for a custom tool, from the arguments of the function that stands for it.
#pragma once

#include <string>
#include <string_view>

namespace braid::net {

// Takes arguments piece by piece as a model writes them, {"input":"…"}, and gives the text as far as it is certain.
class CustomInput {
 public:
  // What the piece adds to the text.
  std::string feed(std::string_view piece);

  // Once all has been fed, or max_tokens has cut it: the rest of the text. Of an object of another form the text of its one string; else
  // the whole object.
  std::string finish();

 private:
  enum class Stage { kBegin, kText, kEnd, kOther };

  void begin(char c);
  void take(char c, std::string& text);
  void take_escape(std::string& text);

  Stage stage_ = Stage::kBegin;
  std::string arguments_;        // all of them
  std::size_t matched_ = 0;      // characters of what the arguments begin with
  std::string escape_;           // begun and not whole
  unsigned high_surrogate_ = 0;  // of a pair whose second half is due
};

}  // namespace braid::net
