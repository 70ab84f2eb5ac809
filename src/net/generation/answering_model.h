// Who answers, as all dialects tell it.
#pragma once

#include "braid/served_model.h"
#include "net/json/write.h"

#include <string>
#include <string_view>

namespace braid::net {

// ,"system_fingerprint":… It ends in the revision that the answer begins with. Nothing without one.
inline void append_fingerprint(std::string& out, std::string_view fingerprint) {
  if (fingerprint.empty()) return;
  out += R"(,"system_fingerprint":)";
  json::append_lossy_string(out, fingerprint);
}

// What stands behind "model": in an answer: the id, and behind it the fingerprint as a member of its own.
inline std::string answering_model(const ServedModel& model) {
  std::string out;
  json::append_lossy_string(out, model.id);
  append_fingerprint(out, model.fingerprint);
  return out;
}

}  // namespace braid::net
