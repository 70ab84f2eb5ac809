// What the AMX tier's table shares with this one: everything but the matrix products.
#pragma once

#include <kernels/avx512/tier.h>
#include <kernels/packed_layout.h>

namespace braid::kernels::avx512 {

constexpr KernelTable kEntries{
    .packed_bytes = packed_bytes,
    .pack = pack,
    .unpack_row = unpack_row,
    .prepared_bytes = prepared_bytes,
    .prepare_rows = prepare_rows,
    .rms_norm = rms_norm,
    .rope = rope,
    .swiglu = swiglu,
    .add = add,
    .kv_store = kv_store,
    .attention_scratch_bytes = attention_scratch_bytes,
    .attention = attention,
    .attention_part = attention_part,
    .attention_join = attention_join,
    .argmax = argmax,
    .exp_sum = exp_sum,
    .masses_above = masses_above,
};

}  // namespace braid::kernels::avx512
