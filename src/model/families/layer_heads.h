// Heads whose size and number differ between full and windowed layers, as Gemma 4's folders say them.
#pragma once

#include "model/families/folder_decoder.h"

namespace braid::model {

// Keys of both kinds' heads, of which layers have a window, and of how many values of a head rotate. From then on `size` has the heads of full
// layers. The last layer is a full one.
void translate_layer_heads(FolderReader& in, FolderSize& size);

}  // namespace braid::model
