// The processors that are known, each read from a model's settings.
#pragma once

#include "braid/result.h"
#include "images/processor.h"
#include "images/settings.h"

#include <memory>

namespace braid::images {

struct Family {
  std::unique_ptr<const Processor> processor;
  Marks marks;
};

// Each is kUnsupported, or kBadFile, when the settings ask for what is not known or possible.
Result<Family> make_clip(const Settings& settings);             // CLIP, SigLIP, LLaVA 1.5
Result<Family> make_llava_next(const Settings& settings);       // with its tiles
Result<Family> make_llava_onevision(const Settings& settings);  // likewise, with fewer vectors where they would be very many
Result<Family> make_idefics3(const Settings& settings);         // SmolVLM too
Result<Family> make_internvl(const Settings& settings);
Result<Family> make_internvl_chat(const Settings& settings);  // as its own code does it
Result<Family> make_pixtral(const Settings& settings);        // Mistral 3 too
Result<Family> make_qwen_vl(const Settings& settings);        // 2, 2.5, 3
Result<Family> make_gemma3(const Settings& settings);
Result<Family> make_gemma4(const Settings& settings);
Result<Family> make_lfm2_vl(const Settings& settings);
Result<Family> make_minicpm_v(const Settings& settings);        // 4.6
Result<Family> make_older_minicpm_v(const Settings& settings);  // 2.6, 4.0 and 4.5
Result<Family> make_kimi(const Settings& settings);

// The one of the settings' class. kUnsupported: it is not known.
Result<Family> make_family(const Settings& settings);

}  // namespace braid::images
