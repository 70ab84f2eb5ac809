// Turns what a call's reader finds out into deltas.
#pragma once

#include "net/generation/answer_event.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace braid::net {

// Numbers the calls of one choice and names them: ids depend on `id_seed` and the index only.
class CallWriter {
 public:
  CallWriter(std::uint64_t id_seed, bool short_ids) : id_seed_(id_seed), short_ids_(short_ids) {}

  // Where deltas go until the next redirect().
  void redirect(std::vector<Delta>& out) { out_ = &out; }

  void begin(std::string name);
  void arguments(std::string_view text);  // of the call begun last
  std::uint32_t calls() const { return calls_; }

 private:
  std::string id_of(std::uint32_t index) const;

  std::uint64_t id_seed_;
  bool short_ids_;
  std::uint32_t calls_ = 0;
  std::vector<Delta>* out_ = nullptr;
};

}  // namespace braid::net
