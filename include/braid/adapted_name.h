// What one name means where models have adapters.
#pragma once

#include "braid/adapters.h"
#include "braid/model_name.h"
#include "braid/served_model.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

namespace braid {

// A model and one of its adapters, which need not be loaded: the name is the adapter's own, or "model:adapter".
struct AdaptedName {
  const ServedModel* base;
  std::string adapter;
};

// Nothing: it is the name of a model, or of nobody. Loop only.
inline std::optional<AdaptedName> adapted_name(const ModelDirectory& models, std::string_view name) {
  const auto is_id = [&](const ServedModel* model) { return model->id == name; };
  if (std::ranges::any_of(models.all(), is_id)) return std::nullopt;
  const std::size_t colon = name.rfind(':');
  const std::string_view head = name.substr(0, colon == std::string_view::npos ? 0 : colon);
  const std::string_view tail = name.substr(colon == std::string_view::npos ? 0 : colon + 1);
  for (const ServedModel* model : models.all()) {
    if (model->adapters == nullptr) continue;
    if (model->adapters->has(name)) return AdaptedName{model, std::string(name)};
    // Once it has had adapters, what follows its name is one of them, and no tag: nobody gets the base's answers instead.
    const bool is_base = !head.empty() && (model->id == head || may_name(head, model->id));
    if (is_base && (model->adapters->has(tail) || (model->adapters->had_any() && tail != "latest")))
      return AdaptedName{model, std::string(tail)};
  }
  return std::nullopt;
}

}  // namespace braid
