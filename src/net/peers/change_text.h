// Changes as servers tell each other of them.
#pragma once

#include "braid/result.h"
#include "braid/value.h"
#include "net/service/changes.h"

#include <string>
#include <vector>

namespace braid::net::peers {

// {"number":…,"node":…,"model":…,"adapter":…,"revision":…,"kind":…, and what stands in `more`}
void append_key(std::string& out, const ChangeKey& key, std::string_view more = {});

// A line of JSON and the body of the request that made it.
std::string text_of(const Change& change);
// kInvalidArgument. Takes the body out of the text.
Result<Change> read_change(std::string& text);

struct State {
  std::string node;
  std::vector<KnownChange> changes;
};
// What GET /v1/peers says. kInvalidArgument.
Result<State> read_state(std::string& text);

}  // namespace braid::net::peers
