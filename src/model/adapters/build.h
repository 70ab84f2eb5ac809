// From an adapter's files to what can be computed with, for one base.
#pragma once

#include "braid/result.h"
#include "kernels/kernel_table.h"
#include "model/adapters/adapter.h"
#include "model/adapters/stored_adapter.h"
#include "model/model_shape.h"
#include "model/weights.h"

#include <memory>

namespace braid::model {

// Any thread; the base is immutable. kBadFile or kUnsupported: a sentence that names the tensor, what was found and what the base has.
Result<std::shared_ptr<const Adapter>> build_adapter(const StoredAdapter& stored, const ModelShape& model, const Weights& weights,
                                                     const kernels::KernelTable& table);

}  // namespace braid::model
