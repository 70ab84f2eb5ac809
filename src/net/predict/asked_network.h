// The network that a body is about, and what such bodies have in common.
#pragma once

#include "braid/result.h"
#include "braid/served_model.h"
#include "braid/tensor.h"
#include "braid/value.h"
#include "net/predict/tensor_file.h"
#include "net/service/asked_model.h"

#include <span>
#include <string>

namespace braid::net::predict {

std::string names_of(std::span<const TensorSignature> signatures);

// By its id; without one the only network there is. What is immutable of the networks: any thread.
Result<const ServedNetwork*> find_network(const ModelDirectory& models, const NamedModel& named);

// Of a file's metadata what named_model() reads.
Value names_in(const TensorFile& file);

// "encoding_format": whether tensors are answered in base64.
Result<bool> wants_packed(const Value* format);

// As a request of text has it; nothing: it says none. As a number, or of a file's metadata as a text.
Result<std::optional<std::int32_t>> read_priority(const Value* value);
Result<std::optional<std::int32_t>> read_priority(const std::string* text);

}  // namespace braid::net::predict
