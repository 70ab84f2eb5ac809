// Tensors in JSON: nested lists, or {"shape": [2, 3], "dtype": "float32", "data": BASE64} of the little-endian bytes. int32 becomes
// int64.
#pragma once

#include "braid/result.h"
#include "braid/tensor.h"
#include "braid/value.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace braid::net::predict {

// Of the rank and type of `signature`; sizes are for the network to check. kInvalidArgument with the path of the fault below `path`.
Result<Tensor> read_tensor(const Value& value, const TensorSignature& signature, const std::string& path);

// Of int32's little-endian bytes, as many as the shape takes.
Tensor widened(TensorShape shape, const char* bytes);

// How many numbers there are in an answer of these. kInvalidArgument, about the field `param`: more than one may have.
Result<std::size_t> answered_numbers(std::span<const Tensor> outputs, std::string_view param);

// What is no number, which JSON does not have, is null in lists.
void append_lists(std::string& out, const Tensor& tensor);
void append_packed(std::string& out, const Tensor& tensor);

}  // namespace braid::net::predict
