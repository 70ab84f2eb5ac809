// `braid info` of what generates nothing: models that read whole texts, and small networks.
#pragma once

#include "app/options.h"
#include "braid/result.h"

namespace braid::app {

// Whether the options' model is one of these.
bool reports_vectors(const ModelReportOptions& options);

// Prints it, loaded as `braid serve` would, and what its weights take. kBadFile or kUnsupported with the file's name.
Result<void> print_vectors(const ModelReportOptions& options);

}  // namespace braid::app
