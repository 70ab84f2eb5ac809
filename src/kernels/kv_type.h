// Names of the KV types.
#pragma once

#include "kernels/kernel_table.h"

#include <optional>
#include <string_view>

namespace braid::kernels {

const char* kv_type_name(KvType type);
std::optional<KvType> parse_kv_type(std::string_view name);  // f32, f16, bf16, int8

}  // namespace braid::kernels
