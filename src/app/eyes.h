// What of a model sees: the tower of its folder, or of a file beside it.
#pragma once

#include "app/options.h"
#include "braid/image_reader.h"
#include "braid/result.h"
#include "braid/text_codec.h"
#include "kernels/thread_team.h"
#include "model/images/image_tower.h"
#include "model/language_model.h"

#include <memory>
#include <string>

namespace braid::app {

struct Eyes {
  std::unique_ptr<const ImageReader> reader;  // null: the model reads text alone, and there is no tower either
  std::unique_ptr<model::ImageTower> tower;
  std::string file;  // --mmproj, or what was found; empty: it is in the model's folder
};

// By options.mmproj, by what lies beside a GGUF file, or by the folder's own tensors. What this build does not know of a model that was not
// asked to see is left out with a line in the log. The team computes with it and outlives it.
Result<Eyes> open_eyes(const ModelOptions& options, kernels::ThreadTeam& team, const TextCodec& codec);

// What the language model has to know of its tower.
void fit_to_tower(const Eyes& eyes, model::LoadOptions& options);
// kInvalidArgument: the tower is another model's.
Result<void> check_fit(const Eyes& eyes, const model::LanguageModel& model);

}  // namespace braid::app
