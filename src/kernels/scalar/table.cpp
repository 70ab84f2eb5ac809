#include <kernels/packed_layout.h>
#include <kernels/scalar/tier.h>

namespace braid::kernels::scalar {
namespace {

void matmul(const MatmulArgs& args, const PanelSource& panels) noexcept {
  for (PanelRange range; panels.next(panels.context, range);) {
    if (is_quantized(args.weights->type)) {
      matmul_quantized(args, range.begin, range.end);
    } else {
      matmul_float(args, range.begin, range.end);
    }
  }
}

}  // namespace

constinit const KernelTable kTable{
    .isa = Isa::kScalar,
    .name = "scalar",
    .packed_bytes = packed_bytes,
    .pack = pack,
    .unpack_row = unpack_row,
    .prepared_bytes = prepared_bytes,
    .prepare_rows = prepare_rows,
    .matmul = matmul,
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

}  // namespace braid::kernels::scalar
