// What the commands have in common that write model files.
#pragma once

#include "braid/result.h"

#include <string>

namespace braid::app {

// kInvalidArgument when `output` is there already and `force` does not allow that, or is the input itself.
Result<void> check_output(const std::string& input, const std::string& output, bool force);

// "model.gguf written, 4.07 GiB"
void print_written(const std::string& path);

}  // namespace braid::app
