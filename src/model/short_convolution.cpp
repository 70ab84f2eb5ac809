#include "model/short_convolution.h"

#include "model/causal_convolution.h"

#include <algorithm>
#include <array>
#include <functional>

namespace braid::model {
void ShortConvolution::mix(const step::Pass& pass, std::size_t index, const LayerShape& shape, const LayerWeights& layer,
                           const KvArena& pool, Workspace& space) const {
  const ShortConvolutionShape& own = *shape.convolution;
  const auto rows = static_cast<std::int64_t>(pass.tokens.size());
  const std::array inputs{Product{&layer.convolution.input.matrix, space.mixed}};
  products_.run(inputs, rows, space, [&](std::int64_t row, float* scratch) {
    return residual_.read(row, shape.attention_norm, layer.attention_norm, space, scratch);
  });
  products_.add_bias(layer.convolution.input, space.mixed, rows);
  if (space.shape.drafts > 0) keep_inputs(pass, space.mixed, space.kept[index].mixed, own.input.outputs);
  carry(pass, index, shape, layer, pool, space);
}

void ShortConvolution::replay(const step::Pass& pass, std::size_t index, const LayerShape& shape, const LayerWeights& layer,
                              const KvArena& pool, Workspace& space) const {
  take_inputs(pass, space.kept[index].mixed, space.mixed, shape.convolution->input.outputs);
  carry(pass, index, shape, layer, pool, space);
}

void ShortConvolution::carry(const step::Pass& pass, std::size_t index, const LayerShape& shape, const LayerWeights& layer,
                             const KvArena& pool, Workspace& space) const {
  const ShortConvolutionShape& own = *shape.convolution;
  const std::int64_t chunks = (own.width + kConvolutionChannels - 1) / kConvolutionChannels;
  team_.for_chunks(static_cast<std::int64_t>(pass.sequences.size()) * chunks, 1, [&](std::int64_t from, std::int64_t to, int) {
    for (std::int64_t item = from; item < to; ++item) {
      const std::int64_t begin = item % chunks * kConvolutionChannels;
      const std::int64_t end = std::min<std::int64_t>(own.width, begin + kConvolutionChannels);
      const step::PassSequence& sequence = pass.sequences[static_cast<std::size_t>(item / chunks)];
      const CausalConvolution channels{table_,
                                       layer.convolution.convolution,
                                       pass,
                                       sequence,
                                       pool,
                                       index,
                                       own.width,
                                       own.taps,
                                       space.mixed,
                                       2 * own.width,
                                       space.attended,
                                       begin,
                                       end};
      channels.start();
      for (std::int64_t token = 0; token < sequence.count; ++token) {
        float* row = space.mixed[sequence.first + token];  // B, C and x
        float* x = row + 2 * own.width;
        std::transform(x + begin, x + end, row + begin, x + begin, std::multiplies<>());
        channels.convolve(token, false);
        float* out = space.attended[sequence.first + token];
        std::transform(out + begin, out + end, row + own.width + begin, out + begin, std::multiplies<>());
      }
      channels.keep();
    }
  });
}

void ShortConvolution::add(std::int64_t rows, const LayerShape& shape, const LayerWeights& layer, Workspace& space) const {
  residual_.add(layer.convolution.output, shape.attention_post_norm, layer.attention_post_norm, shape.residual_scale, rows, space,
                [&](std::int64_t row, float*) { return space.attended.fetch(row, shape.convolution->width); });
}

}  // namespace braid::model
