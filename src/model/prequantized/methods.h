// One reader for each way of quantising. `own` is the object that configures it; what fails is in `config`.
#pragma once

#include "model/prequantized/prequantized.h"

#include <string>
#include <string_view>
#include <vector>

namespace braid::model {

void read_mlx(const files::HfFolder& folder, FolderConfig& own, FolderConfig& config, Prequantized& out);
void read_gptq(const files::HfFolder& folder, FolderConfig& own, FolderConfig& config, Prequantized& out);
void read_awq(const files::HfFolder& folder, FolderConfig& own, FolderConfig& config, Prequantized& out);
void read_compressed_tensors(const files::HfFolder& folder, FolderConfig& own, FolderConfig& config, Prequantized& out);
void read_mxfp4(const files::HfFolder& folder, FolderConfig& own, FolderConfig& config, Prequantized& out);
void read_fp8(const files::HfFolder& folder, FolderConfig& own, FolderConfig& config, Prequantized& out);

// What stands before ".<suffix>" in the names of the folder's tensors.
std::vector<std::string> stems_of(const files::HfFolder& folder, std::string_view suffix);

}  // namespace braid::model
