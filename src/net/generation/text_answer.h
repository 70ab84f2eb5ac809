// The answer to a request that generates nothing.
#pragma once

#include <string>
#include <vector>

namespace braid::net {

struct TextAnswer {
  std::string document;                          // JSON
  std::vector<std::string> tools_left_out = {};  // as in Wish
};

}  // namespace braid::net
