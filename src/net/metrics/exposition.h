// GET /metrics and /v1/metrics: what the HTTP side and the engine count, and the system's figures.
#pragma once

#include "braid/served_model.h"
#include "net/http/connection_set.h"
#include "net/metrics/counters.h"
#include "net/metrics/family_list.h"
#include "net/metrics/system_figures.h"

#include <span>

namespace braid::net {

void add_http(FamilyList& families, const Counters& counters, const http::ConnectionSet& connections);
void add_engine(FamilyList& families, const EngineStats& stats);
void add_ranks(FamilyList& families, std::span<const RankSeconds> ranks);
void add_predictor(FamilyList& families, const PredictorStats& stats);
void add_system(FamilyList& families, const SystemFigures& figures);

FamilyList gather_metrics(const Counters& counters, const http::ConnectionSet& connections, const ServiceStatus& status,
                          const SystemFigures& figures);

}  // namespace braid::net
