// Folders whose weights are quantised already: MLX, GPTQ, AWQ, compressed-tensors and fp8.
#pragma once

#include "files/hf_folder.h"
#include "model/families/folder_config.h"
#include "model/prequantized/coded_matrix.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace braid::model {

struct Prequantized {
  std::map<std::string, std::shared_ptr<const CodedMatrix>> matrices;  // by the name of the weight that they are ("lm_head.weight")
  std::set<std::string> used;                                          // tensors of the folder that they were made of, or that say nothing
  std::vector<std::string> notes;                                      // what is not held exactly
};

// What config.json's quantization_config (MLX: quantization) says of the folder's tensors; nothing where it says nothing. What fails is in
// config.error: kUnsupported names the method, kBadFile the tensor.
Prequantized read_prequantized(const files::HfFolder& folder, FolderConfig& config);

}  // namespace braid::model
