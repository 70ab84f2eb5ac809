// A Go template as its texts and the words of its actions.
#pragma once

#include "braid/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace braid::text::go {

struct Word {
  enum class Kind {
    kText,   // what stands between actions, as it is written out
    kBegin,  // of an action
    kEnd,
    kName,      // a keyword, a function, true, false, nil
    kField,     // ".Name" without its point; empty: the point alone
    kVariable,  // "$name"
    kString,    // unescaped
    kNumber,
    kSign,  // ( ) | , := =
  };
  Kind kind = Kind::kText;
  std::string text;
  int line = 1;
  bool is_joined = false;  // nothing stands between it and the word before
};

// kInvalidArgument with the line.
Result<std::vector<Word>> split(std::string_view source);

}  // namespace braid::text::go
