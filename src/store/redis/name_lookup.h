// What a name stands for, without waiting for a resolver that hangs.
#pragma once

#include "braid/result.h"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace braid::store {

// The addresses of a name as numbers, those of IPv4 first; none: it stands for nothing now. On a thread of its own, for as long as it takes.
using Resolver = std::function<std::vector<std::string>(const std::string& host)>;
std::vector<std::string> ask_system(const std::string& host);

// Lookups of one name, for one thread. Each has a thread, of which there is one at a time: it holds all that it uses, and one that hangs
// outlives this and whoever else has gone meanwhile.
class NameLookup {
 public:
  using Clock = std::chrono::steady_clock;

  explicit NameLookup(std::string host, Resolver resolve = ask_system);

  // Asks, unless an answer is being waited for. A number is none that anybody is asked about.
  void begin();
  // What it stands for. kIo: no answer came before the deadline, or `stop` could be read; the next call gets it when it comes after all.
  Result<std::vector<std::string>> numbers(int stop, Clock::time_point deadline);

 private:
  struct Asked;
  const std::string host_;
  const Resolver resolve_;
  std::shared_ptr<Asked> asked_;  // null: nobody is being asked
};

}  // namespace braid::store
