// What a model's layers say besides its weights.
#pragma once

#include "braid/model_registry.h"
#include "braid/result.h"
#include "registry/catalogue.h"

#include <string>
#include <string_view>

namespace braid::registry {

Result<ModelSettings> read_settings(const CatalogueEntry& entry);

// Of one by its kind's text: a template, a system prompt, parameters and messages as JSON, a licence.
Result<void> add_setting(ModelSettings& settings, std::string_view kind, std::string text);

// kInvalidArgument for a parameter that is no number, truth value, text or list of texts, and for a message that is none.
Result<void> check_settings(const ModelSettings& settings);

}  // namespace braid::registry
