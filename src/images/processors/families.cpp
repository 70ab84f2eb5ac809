#include "images/processors/families.h"

#include <array>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <utility>

namespace braid::images {

Result<Family> make_family(const Settings& settings) {
  using Make = Result<Family> (*)(const Settings&);
  constexpr std::array<std::pair<std::string_view, Make>, 17> kKnown = {{
      {"CLIPImageProcessor", make_clip},
      {"SiglipImageProcessor", make_clip},
      {"LlavaImageProcessor", make_clip},
      {"LlavaNextImageProcessor", make_llava_next},
      {"LlavaOnevisionImageProcessor", make_llava_onevision},
      {"Idefics3ImageProcessor", make_idefics3},
      {"SmolVLMImageProcessor", make_idefics3},
      {"GotOcr2ImageProcessor", make_internvl},
      {"InternVLChat", make_internvl_chat},
      {"PixtralImageProcessor", make_pixtral},
      {"Qwen2VLImageProcessor", make_qwen_vl},
      {"Gemma3ImageProcessor", make_gemma3},
      {"Gemma4ImageProcessor", make_gemma4},
      {"Lfm2VlImageProcessor", make_lfm2_vl},
      {"MiniCPMV4_6ImageProcessor", make_minicpm_v},
      {"MiniCPMVImageProcessor", make_older_minicpm_v},
      {"Kimi_K25ImageProcessor", make_kimi},
  }};
  const std::string name = settings.processor_class();
  for (const auto& [own, make] : kKnown)
    if (own == name) return make(settings);
  return Error{ErrorCode::kUnsupported, fmt::format("images that a {} prepares are not supported", name), ""};
}

}  // namespace braid::images
