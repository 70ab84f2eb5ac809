// Figures under the names of other servers, so that boards made for them go on.
#pragma once

#include "braid/engine_stats.h"
#include "net/metrics/counters.h"
#include "net/metrics/family_list.h"

#include <string>

namespace braid::net {

// vLLM's, each with the label model_name.
void add_vllm_names(FamilyList& families, const Counters& counters, const EngineStats& engine, const std::string& model);

// llama-server's.
void add_llamacpp_names(FamilyList& families, const EngineStats& engine);

}  // namespace braid::net
