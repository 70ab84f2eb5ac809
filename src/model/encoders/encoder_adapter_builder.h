// From the files of an adapter to what an encoder computes with.
#pragma once

#include "braid/result.h"
#include "files/byte_source.h"
#include "kernels/kernel_table.h"
#include "model/adapters/peft_config.h"
#include "model/adapters/stored_adapter.h"
#include "model/encoders/encoder_adapter.h"
#include "model/encoders/encoder_shape.h"
#include "model/encoders/encoder_weights.h"

#include <memory>
#include <string>

namespace braid::model {

// Immutable; it outlives the making of adapters, which need it no further.
struct AdaptedEncoder {
  const EncoderShape& shape;
  const EncoderWeights& weights;
  const kernels::KernelTable& table;
  kernels::WeightType type;  // of matrices that an adapter brings whole
  std::string folder;        // of the hub, that it was loaded from; empty: it was a file
};

// Of the tensors of a safetensors file as PEFT names them. Any thread. kBadFile or kUnsupported: a sentence that names the tensor, what was
// found and what the base has.
Result<std::shared_ptr<const EncoderAdapter>> build_encoder_adapter(const PeftConfig& config, const files::ByteSource& tensors,
                                                                    const AdaptedEncoder& base);

// Of a GGUF file as llama.cpp's converter writes it. Likewise; kUnsupported also where that makes no files of such encoders.
Result<std::shared_ptr<const EncoderAdapter>> build_encoder_adapter(std::shared_ptr<const files::ByteSource> gguf,
                                                                    const AdaptedEncoder& base);

}  // namespace braid::model
