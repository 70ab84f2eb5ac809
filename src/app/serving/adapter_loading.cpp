#include "app/serving/adapter_loading.h"

#include "app/serving/weight_files.h"
#include "model/adapters/build.h"
#include "model/adapters/read_adapter.h"

#include <utility>

namespace braid::app {
namespace {

Result<model::StoredAdapter> read_tensors(const WeightSource& source, const LoadedAdapter* previous, const model::AdaptedBase& base) {
  if (previous == nullptr || previous->config == nullptr)
    return Error{ErrorCode::kNotFound, "tensors alone are taken of an adapter that was loaded from a folder of PEFT", {}};
  auto read = read_weights(source);
  if (!read) return read.error();
  std::shared_ptr<const files::ByteSource> tensors = std::move(*read);
  if (source.partial) {
    auto all = model::with_newer_tensors(*previous->tensors, *tensors);
    if (!all) return all.error();
    tensors = std::move(*all);
  }
  return model::read_peft_tensors(previous->config, std::move(tensors), base);
}

Result<model::StoredAdapter> read(const WeightSource& source, const LoadedAdapter* previous, const model::AdaptedBase& base) {
  if (source.path.empty()) return read_tensors(source, previous, base);
  Result<model::StoredAdapter> stored = model::read_adapter(source.path, base);
  if (!stored) return stored;
  if (const Result<void> sound = check_sha256(source.checksum, *stored->sources.front()); !sound) return sound.error();
  if (!source.partial) return stored;
  if (previous == nullptr || previous->config == nullptr || stored->config == nullptr)
    return Error{ErrorCode::kNotFound, "a part of an adapter is taken of one that was loaded from a folder of PEFT", {}};
  auto all = model::with_newer_tensors(*previous->tensors, *stored->sources.front());
  if (!all) return all.error();
  return model::read_peft_tensors(previous->config, std::move(*all), base);
}

Result<LoadedAdapter> make(const Result<model::StoredAdapter>& stored, const AdapterBase& base, const model::Weights& weights) {
  if (!stored) return as_refusal(stored.error());
  auto adapter = model::build_adapter(*stored, base.model.shape(), weights, base.table);
  if (!adapter) return as_refusal(adapter.error());
  LoadedAdapter loaded{std::move(*adapter), stored->config, stored->sources.front()};
  if (const Result<void> handed_out = hand_out(loaded, base); !handed_out) return handed_out.error();
  return loaded;
}

}  // namespace

Result<LoadedAdapter> remake_adapter(const LoadedAdapter& loaded, const AdapterBase& base, const model::Weights& weights) {
  return make(model::read_peft_tensors(loaded.config, loaded.tensors, {base.model.shape(), base.folder}), base, weights);
}

Result<LoadedAdapter> load_adapter(const WeightSource& source, const LoadedAdapter* previous, const AdapterBase& base,
                                   const model::Weights& weights) {
  return make(read(source, previous, {base.model.shape(), base.folder}), base, weights);
}

Result<void> hand_out(LoadedAdapter& loaded, const AdapterBase& base) {
  if (base.model.passes() == nullptr) return {};
  auto copies = base.model.passes()->hand_out(*loaded.adapter);
  if (!copies) return copies.error();
  loaded.copies = std::move(*copies);
  return {};
}

}  // namespace braid::app
