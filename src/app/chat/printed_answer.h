// An answer in the terminal, on stdout.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace braid::app {

// Piece by piece, or once it is whole as a line of JSON, as Ollama's /api/chat has it.
class PrintedAnswer {
 public:
  PrintedAnswer(bool as_json, std::string model);

  void add(std::string_view piece);
  std::string finish(bool failed);  // what was said; of one that has failed, there is no JSON

 private:
  const bool as_json_;
  const bool terminal_;
  std::string model_;
  std::string spoken_;
};

}  // namespace braid::app
