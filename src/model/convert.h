// Writes a model, from whatever it was read, as a GGUF file.
#pragma once

#include "braid/result.h"
#include "files/gguf.h"
#include "files/importance_matrix.h"
#include "files/progress.h"
#include "kernels/thread_team.h"
#include "kernels/weight_type.h"
#include "model/quantization_mix.h"

#include <optional>
#include <string>

namespace braid::model {

struct ConvertOptions {
  // What matrices of F32, F16 and BF16 become, as far as a type's blocks divide their rows; their own types otherwise. Vectors are F32.
  std::optional<kernels::WeightType> type;
};

// Tensors are encoded by plain rounding, a few rows at a time: no more than one tensor's pieces are in memory. kUnsupported for types that
// cannot be read, kIo when the file cannot be written.
Result<void> write_model(const files::GgufFile& file, const std::string& path, const ConvertOptions& options, kernels::ThreadTeam& team,
                         const files::Progress& progress);

struct QuantizeOptions {
  const QuantizationMix* mix = nullptr;
  const files::ImportanceMatrix* importance = nullptr;
  bool pure = false;            // all matrices have the mix's own type
  bool from_quantized = false;  // also those are rounded again that are quantised already
};

// The same with scales found by search (kernels::encode_row_fitted). kInvalidArgument where matrices are quantised already, or an importance
// matrix is that of another model.
Result<void> quantize_model(const files::GgufFile& file, const std::string& path, const QuantizeOptions& options, kernels::ThreadTeam& team,
                            const files::Progress& progress);

}  // namespace braid::model
