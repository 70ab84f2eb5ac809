// What a family is: from the keys of a file to the description of a model, and from a folder to the keys and tensors of such a file. Its
// quirks are in its own file and nowhere else.
#pragma once

#include "model/families/folder_reader.h"
#include "model/families/gguf_keys.h"
#include "model/model_shape.h"

#include <array>
#include <string_view>

namespace braid::model {

struct Family {
  std::string_view architecture;           // general.architecture
  ModelShape (*describe)(GgufKeys& keys);  // what has failed is in keys.error; the shape is then not used
  // model_type of the folders that are such models, and how they become one; what has failed is in the reader's config.error.
  std::array<std::string_view, 6> folder_types;
  void (*translate)(FolderReader& in);
};

extern const Family kApertus, kArcee, kBaichuan, kFalconH1, kLfm2Moe, kMamba2, kNemotronH, kBloom, kChatGlm, kCohere, kCohere2, kDeepSeek2,
    kDots1, kErnie45, kErnie45Moe, kExaone, kExaone4, kFalcon, kFlexOlmo, kGemma, kGemma2, kGemma3, kGemma3n, kGemma4, kGlm4, kGlm4Moe,
    kGpt2, kGptJ, kGptNeox, kGptOss, kGranite, kGraniteHybrid, kGraniteMoe, kHunyuan, kHunyuanMoe, kInternLm2, kLfm2, kLlama, kMinicpm,
    kMinicpm3, kMiniMaxM2, kMistral3, kMpt, kNemotron, kNemotronHMoe, kOlmo, kOlmo2, kOlmoe, kPhi2, kPhi3, kPhiMoe, kQwen2, kQwen2Moe,
    kQwen2Vl, kQwen3, kQwen35, kQwen35Moe, kQwen3Moe, kQwen3Next, kQwen3Vl, kQwen3VlMoe, kSeedOss, kSmolLm3, kStableLm, kStarcoder2;

}  // namespace braid::model
