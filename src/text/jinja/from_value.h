// JSON as a template sees it.
#pragma once

#include "braid/value.h"
#include "text/jinja/object.h"

namespace braid::text::jinja {

// Missing when the value nests deeper than kMaxValueDepth.
Object to_object(const Value& value);

}  // namespace braid::text::jinja
