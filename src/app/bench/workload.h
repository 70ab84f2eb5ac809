// The bodies of the requests, made before the clock starts.
#pragma once

#include "app/bench/bench.h"
#include "braid/result.h"

#include <string>
#include <vector>

namespace braid::bench {

// `count` JSON bodies, the same for the same options. Fewer prompts than that are used again from the first.
Result<std::vector<std::string>> make_bodies(const BenchOptions& options, std::int64_t count);

}  // namespace braid::bench
