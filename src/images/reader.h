// The reader of a model's images.
#pragma once

#include "braid/image_reader.h"
#include "braid/result.h"
#include "braid/text_codec.h"
#include "files/gguf.h"
#include "files/hf_folder.h"
#include "images/settings.h"

#include <memory>

namespace braid::images {

// kUnsupported: the processor is not known, or the tokenizer has no token for its vectors. The codec is asked now alone.
Result<std::unique_ptr<const ImageReader>> open_reader(Settings settings, const TextCodec& codec);

// Settings of a folder of the hub, and of the metadata of a file with an image tower ("mmproj"), as a folder would have them.
Result<Settings> folder_settings(const files::HfFolder& folder);
Result<Settings> mmproj_settings(const files::GgufFile& file);

}  // namespace braid::images
