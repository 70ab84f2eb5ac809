// JSON as a template sees it.
#pragma once

#include "model/jinja/object.h"

#include "braid/value.h"

namespace braid::model::jinja {

// Missing when the value nests deeper than kMaxValueDepth.
Object to_object(const Value& value);

}  // namespace braid::model::jinja
