// JSON as a template sees it.
#pragma once

#include "braid/value.h"
#include "model/jinja/object.h"

namespace braid::model::jinja {

// Missing when the value nests deeper than kMaxValueDepth.
Object to_object(const Value& value);

}  // namespace braid::model::jinja
