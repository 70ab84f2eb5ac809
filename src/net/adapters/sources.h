// What the bodies of requests say of an adapter that is to be loaded.
#pragma once

#include "braid/adapters.h"
#include "braid/result.h"
#include "net/service/service.h"

#include <optional>
#include <string>

namespace braid::net::adapters {

struct Wanted {
  std::string model;  // its base; empty: the first model
  std::string name;
  WeightSource source;
  std::optional<UpdateMode> replacing = {};  // as Adapters::load() has it
  std::string stored = {};                   // in the registry, whose path becomes the source's; empty: that is known
};

// kForbidden: a path outside of the folders of the options, links followed; or there are none.
Result<Wanted> read_load(std::string& body, const Service& service);
Result<Wanted> read_vllm_load(std::string& body, const Service& service);
// The adapter is there, and the source may be in the body.
Result<Wanted> read_update(std::string& body, const Service& service);

}  // namespace braid::net::adapters
