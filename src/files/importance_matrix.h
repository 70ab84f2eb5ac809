// How much each input of a model's matrices matters: the mean square of what was seen there while a text was computed (llama-imatrix).
#pragma once

#include "braid/result.h"

#include <map>
#include <string>
#include <vector>

namespace braid::files {

// By the name of the matrix; [inputs], or of experts [experts, inputs].
using ImportanceMatrix = std::map<std::string, std::vector<float>>;

// GGUF, or the older binary form. kBadFile with a sentence that names the file.
Result<ImportanceMatrix> read_importance_matrix(const std::string& path);

}  // namespace braid::files
