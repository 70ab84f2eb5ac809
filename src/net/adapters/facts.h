// What is told of an adapter.
#pragma once

#include "braid/adapters.h"
#include "braid/served_model.h"

#include <string>
#include <string_view>

namespace braid::net::adapters {

// {"id":…,"object":"adapter",…}
void append_facts(std::string& out, const ServedModel& base, const AdapterFacts& facts);

// One that is loaded, and its base; no base: there is none of that name, which may be "model:adapter".
struct NamedAdapter {
  const ServedModel* base = nullptr;
  AdapterFacts facts = {};
};
NamedAdapter find(const ModelDirectory& models, std::string_view name);

}  // namespace braid::net::adapters
