// From an adapter's source to a revision that can be computed with.
#pragma once

#include "braid/adapters.h"
#include "braid/result.h"
#include "kernels/kernel_table.h"
#include "model/adapters/adapter.h"
#include "model/adapters/stored_adapter.h"
#include "model/encoders/encoder_adapter_builder.h"
#include "model/language_model.h"

#include <memory>
#include <string>

namespace braid::app {

// What adapters are made for. Immutable; it outlives their making.
struct AdapterBase {
  const model::LanguageModel& model;
  const kernels::KernelTable& table;
  std::string folder;  // of the hub; empty: it was loaded from a file
  std::string digest;  // of the weights that were loaded
};

// A revision, and what a later one may take over from it.
struct LoadedAdapter {
  std::shared_ptr<const model::Adapter> adapter;
  std::shared_ptr<const model::PeftConfig> config;               // null: it was no folder of PEFT
  std::shared_ptr<const files::ByteSource> tensors;              // as they were stored
  std::shared_ptr<const model::Copies> copies = {};              // where others compute the model; null: nobody does
  std::shared_ptr<const model::EncoderAdapter> of_encoder = {};  // instead of `adapter`, where the base reads whole texts
};

// The same adapter for other weights of the base, where it follows from them. Any thread.
Result<LoadedAdapter> remake_adapter(const LoadedAdapter& loaded, const AdapterBase& base, const model::Decoder& decoder);

// Any thread. `previous`: the revision that a source of tensors alone belongs to; null: there is none. Errors of files are kInvalidArgument.
// `decoder`: of the base. Where others compute it, each of them has the adapter then.
Result<LoadedAdapter> load_adapter(const WeightSource& source, const LoadedAdapter* previous, const AdapterBase& base,
                                   const model::Decoder& decoder);

// Likewise for a base that reads whole texts.
Result<LoadedAdapter> load_adapter(const WeightSource& source, const LoadedAdapter* previous, const model::AdaptedEncoder& base);

// To those who compute the base, if any: one that was made for others with the same weights. Any thread.
Result<void> hand_out(LoadedAdapter& loaded, const AdapterBase& base);

}  // namespace braid::app
