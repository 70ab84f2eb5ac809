#include "model/exchange_cost.h"

#include <initializer_list>

namespace braid::model {
namespace {

// Adds what the parts of layers gather, in the order in which they are computed.
class Cost {
 public:
  explicit Cost(const Share& share) : share_(share) {}

  // The results of products that read the same rows; those of a width of 0 are none.
  void gather(std::initializer_list<std::int64_t> widths) {
    std::int64_t floats = 0;
    for (const std::int64_t width : widths) floats += width;
    if (floats == 0) return;
    ++all.exchanges;
    all.floats += floats;
  }

  void attend(const AttentionShape& shape) {
    if (shape.latent) {
      gather({shape.latent->query_down.outputs, shape.key.outputs});
      if (shape.latent->query_down.outputs > 0) gather({shape.query.outputs});
      for (std::int32_t head = 0; head < shape.heads; ++head) {
        gather({shape.latent->key_up.outputs});
        gather({shape.latent->value_up.outputs});
      }
    } else if (share_.divides(shape.kv_heads)) {
      gather({shape.query_width()});  // what heads have found; queries, keys and values stay where they are
    } else {
      gather({shape.query.outputs, shape.key.outputs, shape.value.outputs, shape.gate.outputs});
    }
    gather({shape.output.outputs});
  }

  void feed(const FeedForwardShape& shape) {
    if (shape.width == 0) return;
    gather({shape.gated ? shape.gate.outputs : 0, shape.up.outputs});
    gather({shape.down.outputs});
  }

  void feed(const ExpertsShape& shape) {
    gather({shape.router.linear.outputs});
    gather({shape.latent_down.outputs});
    for (std::int32_t i = 0; i < shape.router.chosen; ++i) {
      gather({shape.each.gated ? shape.each.gate.outputs : 0, shape.each.up.outputs});
      gather({shape.each.down.outputs});
    }
    gather({shape.latent_up.outputs});
  }

  ExchangeCost all;

 private:
  const Share& share_;
};

}  // namespace

ExchangeCost exchange_cost(const ModelShape& model, const Share& share) {
  Cost cost(share);
  if (share.is_whole()) return cost.all;
  for (const LayerShape& layer : model.layers) {
    if (layer.attends()) cost.attend(layer.attention);
    if (layer.convolution) {
      cost.gather({layer.convolution->input.outputs});
      cost.gather({layer.convolution->output.outputs});
    }
    if (layer.selective) {
      cost.gather({layer.selective->input.outputs});
      cost.gather({layer.selective->output.outputs});
    }
    if (layer.delta) {
      cost.gather({layer.delta->input.outputs, layer.delta->gate.outputs, layer.delta->beta.outputs, layer.delta->decay.outputs});
      cost.gather({layer.delta->output.outputs});
    }
    cost.feed(layer.feed_forward);
    if (layer.experts) cost.feed(*layer.experts);
  }
  return cost.all;
}

}  // namespace braid::model
