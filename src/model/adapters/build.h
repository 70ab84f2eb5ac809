// From an adapter's files to what can be computed with, for one base.
#pragma once

#include "braid/result.h"
#include "kernels/kernel_table.h"
#include "model/adapters/adapter.h"
#include "model/adapters/stored_adapter.h"
#include "model/model_shape.h"
#include "model/weights.h"

#include <functional>
#include <memory>

namespace braid::model {

// Divides magnitudes, which are lengths yet, by norms of weights that others have.
using Measure = std::function<Result<void>(Adapter& adapter)>;

// Any thread; the base is immutable. `measure` is called where magnitudes want weights that are not in this process; none: they are refused.
// kBadFile or kUnsupported: a sentence that names the tensor, what was found and what the base has.
Result<std::shared_ptr<const Adapter>> build_adapter(const StoredAdapter& stored, const ModelShape& model, const Weights& weights,
                                                     const kernels::KernelTable& table, const Measure& measure = {});

}  // namespace braid::model
