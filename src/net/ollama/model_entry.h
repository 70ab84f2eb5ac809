// A model as Ollama's lists write it.
#pragma once

#include "braid/model_registry.h"
#include "braid/served_model.h"

#include <string>
#include <string_view>

namespace braid::net::ollama {

// 134.5M, 1.2B.
std::string parameter_size(std::int64_t parameters);

// "details":{…}
void append_details(std::string& out, const ModelFacts& facts, std::string_view parent);

// What is known of a served model.
ModelFacts facts_of(const ServedModel& model);

// 64 hexadecimal digits, of all that its answers depend on.
std::string digest_of(const ServedModel& model);

// {"name":…,"model":…,"size":…,"digest":…,"details":{…}, the beginning of an entry.
void append_entry(std::string& out, const ServedModel& model);
void append_entry(std::string& out, const StoredModel& model);

}  // namespace braid::net::ollama
