#include "net/adapters/facts.h"

#include "braid/adapted_name.h"
#include "net/json/write.h"

#include <fmt/format.h>
#include <iterator>

namespace braid::net::adapters {

void append_facts(std::string& out, const ServedModel& base, const AdapterFacts& facts) {
  const auto text = [&out](std::string_view key, std::string_view value) {
    out += key;
    json::append_lossy_string(out, value);
  };
  text(R"({"id":)", facts.name);
  text(R"(,"object":"adapter","base":)", base.id);
  text(R"(,"revision":)", facts.revision);
  text(R"(,"path":)", facts.path);
  fmt::format_to(std::back_inserter(out), R"(,"created":{},"rank":{},"parameters":{},"bytes":{},"number":{},"requests":{}}})",
                 facts.created, facts.rank, facts.parameters, facts.bytes, facts.number, facts.requests);
}

NamedAdapter find(const ModelDirectory& models, std::string_view name) {
  const std::optional<AdaptedName> adapted = adapted_name(models, name);
  if (!adapted) return {};
  for (const AdapterFacts& facts : adapted->base->adapters->list())
    if (facts.name == adapted->adapter) return {adapted->base, facts};
  return {};
}

}  // namespace braid::net::adapters
