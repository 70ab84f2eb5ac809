// Models that read whole texts, from their folders or GGUF files.
#pragma once

#include "app/options.h"
#include "braid/generation_request.h"
#include "braid/pooled_model.h"
#include "braid/result.h"
#include "kernels/thread_team.h"
#include "model/encoders/sentence_modules.h"
#include "model/encoders/text_encoder.h"
#include "text/codec.h"

#include <cstdint>
#include <memory>
#include <string>

namespace braid::app {

// Whether the folder's config.json, or the file's architecture, is one of an encoder. What cannot be read is none.
bool holds_encoder(const std::string& path);

struct LoadedEncoder {
  std::string id;
  std::unique_ptr<const text::ModelCodec> codec;
  std::unique_ptr<model::TextEncoder> encoder;  // computes with the team
  std::int32_t context = 0;                     // tokens of a text
  Pooling pooling = Pooling::kMean;
  VectorRules vectors;
  ClassRules classes;
  std::string fingerprint;
  std::string folder;                                    // of the hub; empty: it was loaded from a file
  kernels::WeightType type = kernels::WeightType::kF32;  // of its matrices
};

// kBadFile or kUnsupported with the folder's name. `team` outlives it.
Result<LoadedEncoder> load_encoder(const ServedModelOptions& options, kernels::ThreadTeam& team);

// Of what the folder's files say of vectors and classes; `width`: of a vector.
VectorRules vector_rules(const model::SentenceModules& modules, std::int64_t width);
// id2label and problem_type of a config.json, of a head with so many classes.
ClassRules class_rules(const std::string& config, std::int64_t classes);

}  // namespace braid::app
