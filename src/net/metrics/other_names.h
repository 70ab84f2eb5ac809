// Figures under the names of other servers, so that boards made for them go on.
#pragma once

#include "braid/engine_stats.h"
#include "braid/served_model.h"
#include "net/metrics/counters.h"
#include "net/metrics/family_list.h"

namespace braid::net {

// vLLM's, each with the label model_name: what is counted of an engine for each model, what is counted of requests once, for the first.
void add_vllm_names(FamilyList& families, const Counters& counters, const ModelDirectory& models);

// llama-server's.
void add_llamacpp_names(FamilyList& families, const Counters& counters, const EngineStats& engine);

}  // namespace braid::net
