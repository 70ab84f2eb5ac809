// AFM (Arcee 2025): Llama with plain feed-forward networks of squared ReLU.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

namespace braid::model {
namespace {

ModelShape describe_arcee(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  model.rotary.front().interleaved = true;
  make_plain(model);
  read_activation(keys, model, {Activation::kReluSquared});
  set_biases(model, Parts::kAttention, Presence::kOptional);
  set_biases(model, Parts::kFeedForward, Presence::kOptional);
  return model;
}

void translate_arcee(FolderReader& in) { pair_rotated(in, translate_decoder(in)); }

}  // namespace

const Family kArcee = {"arcee", describe_arcee, {"arcee"}, translate_arcee};

}  // namespace braid::model
