// One row of a tensor, however it is stored, as a type wants it.
#pragma once

#include "files/gguf.h"
#include "kernels/weight_type.h"

#include <cstddef>
#include <cstdint>

namespace braid::model {

// Whether what is stored are the tensor's rows, or those (of a vector: values) among which its order picks. Its type is one that can be read.
bool is_sound(const files::GgufTensor& tensor);

// Whether what is stored are the tensor's rows, as they are and in their order.
bool has_stored_rows(const files::GgufTensor& tensor);

std::int64_t rows_of(const files::GgufTensor& tensor);

// Row `row` of `tensor` in its own order (of a vector its values are ordered, and it is the only row), of `columns` values, into
// stored_row_bytes() of `type`. Rounds plainly where the type has other values.
void encode_row(const files::GgufTensor& tensor, std::int64_t row, std::int64_t columns, kernels::WeightType type, std::byte* out);

// The same as floats.
void read_row(const files::GgufTensor& tensor, std::int64_t row, std::int64_t columns, float* out);

}  // namespace braid::model
