// The "policy" of a small network's config.json: which of its outputs say how it acts.
#pragma once

#include "braid/policy.h"
#include "braid/result.h"
#include "model/networks/network_shape.h"
#include "model/networks/value_shapes.h"

#include <simdjson.h>
#include <vector>

namespace braid::model {

// `network` has its inputs and outputs. kBadFile with the path of what is wrong.
Result<PolicyForm> read_policy(const simdjson::dom::element& value, const NetworkShape& network);

// Whether the outputs have the shapes and types that its policy needs. `values` by value id. kBadFile.
Result<void> check_policy(const NetworkShape& network, const std::vector<ValueShape>& values);

}  // namespace braid::model
