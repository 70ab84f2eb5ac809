// Packed weights that are in use, so that a file that is served twice is packed once.
#pragma once

#include "app/options.h"
#include "kernels/kernel_table.h"
#include "model/weights.h"

#include <map>
#include <memory>
#include <string>

namespace braid::app {

// What packed weights follow from: the file or folder as it is now, and how they are packed. Empty: nothing is known of it.
std::string weights_key(const ModelOptions& options, const kernels::KernelTable& table);

// One thread at a time.
class WeightShelf {
 public:
  // Null: nobody has them.
  std::shared_ptr<const model::Weights> find(const std::string& key) const {
    const auto known = weights_.find(key);
    return known != weights_.end() ? known->second.lock() : nullptr;
  }
  void put(const std::string& key, const std::shared_ptr<const model::Weights>& weights) {
    std::erase_if(weights_, [](const auto& entry) { return entry.second.expired(); });
    if (!key.empty()) weights_[key] = weights;
  }

 private:
  std::map<std::string, std::weak_ptr<const model::Weights>> weights_;
};

}  // namespace braid::app
