#include "app/serving/adapter_loading.h"

#include "app/serving/weight_files.h"
#include "model/adapters/build.h"
#include "model/adapters/read_adapter.h"

#include <utility>

namespace braid::app {
namespace {

// Tensors alone, of the adapter whose configuration holds further.
Result<model::PeftFolder> read_tensors(const WeightSource& source, const LoadedAdapter* previous) {
  if (previous == nullptr || previous->config == nullptr)
    return Error{ErrorCode::kNotFound, "tensors alone are taken of an adapter that was loaded from a folder of PEFT", {}};
  auto read = read_weights(source);
  if (!read) return read.error();
  return model::PeftFolder{previous->config, std::move(*read)};
}

Error not_of_peft() { return {ErrorCode::kNotFound, "a part of an adapter is taken of one that was loaded from a folder of PEFT", {}}; }

// What the source has, and what it does not have as the previous one has it.
Result<model::PeftFolder> completed(model::PeftFolder some, const LoadedAdapter* previous) {
  if (previous == nullptr || previous->config == nullptr || some.config == nullptr) return not_of_peft();
  auto all = model::with_newer_tensors(*previous->tensors, *some.tensors);
  if (!all) return all.error();
  return model::PeftFolder{previous->config, std::move(*all)};
}

Result<model::StoredAdapter> read(const WeightSource& source, const LoadedAdapter* previous, const model::AdaptedBase& base) {
  model::PeftFolder folder;
  if (source.path.empty()) {
    Result<model::PeftFolder> tensors = read_tensors(source, previous);
    if (!tensors) return tensors.error();
    folder = std::move(*tensors);
  } else {
    Result<model::StoredAdapter> stored = model::read_adapter(source.path, base);
    if (!stored) return stored;
    if (const Result<void> sound = check_sha256(source.checksum, *stored->sources.front()); !sound) return sound.error();
    if (!source.partial) return stored;
    folder = {stored->config, stored->sources.front()};
  }
  if (source.partial) {
    Result<model::PeftFolder> all = completed(std::move(folder), previous);
    if (!all) return all.error();
    folder = std::move(*all);
  }
  return model::read_peft_tensors(std::move(folder.config), std::move(folder.tensors), base);
}

Result<model::PeftFolder> read_of_encoder(const WeightSource& source, const LoadedAdapter* previous) {
  Result<model::PeftFolder> folder = source.path.empty() ? read_tensors(source, previous) : model::read_peft_folder(source.path);
  if (!folder) return folder;
  if (!source.path.empty())
    if (const Result<void> sound = check_sha256(source.checksum, *folder->tensors); !sound) return sound.error();
  return source.partial ? completed(std::move(*folder), previous) : folder;
}

Result<LoadedAdapter> make(const Result<model::StoredAdapter>& stored, const AdapterBase& base, const model::Decoder& decoder) {
  if (!stored) return as_refusal(stored.error());
  model::Measure measure;
  if (model::PassRunner* passes = base.model.passes(); passes != nullptr)
    measure = [passes, &decoder](model::Adapter& lengths) { return passes->measure(lengths, *decoder.copies); };
  auto adapter = model::build_adapter(*stored, base.model.shape(), *decoder.weights, base.table, measure);
  if (!adapter) return as_refusal(adapter.error());
  LoadedAdapter loaded{std::move(*adapter), stored->config, stored->sources.front()};
  if (const Result<void> handed_out = hand_out(loaded, base); !handed_out) return handed_out.error();
  return loaded;
}

Result<LoadedAdapter> load_gguf(const WeightSource& source, const model::AdaptedEncoder& base) {
  if (source.partial) return as_refusal(not_of_peft());
  auto file = files::copy_file(source.path);
  if (!file) return as_refusal(file.error());
  if (const Result<void> sound = check_sha256(source.checksum, **file); !sound) return as_refusal(sound.error());
  auto adapter = model::build_encoder_adapter(*file, base);
  if (!adapter) return as_refusal(adapter.error());
  LoadedAdapter loaded{nullptr, nullptr, std::move(*file)};
  loaded.of_encoder = std::move(*adapter);
  return loaded;
}

}  // namespace

Result<LoadedAdapter> remake_adapter(const LoadedAdapter& loaded, const AdapterBase& base, const model::Decoder& decoder) {
  return make(model::read_peft_tensors(loaded.config, loaded.tensors, {base.model.shape(), base.folder}), base, decoder);
}

Result<LoadedAdapter> load_adapter(const WeightSource& source, const LoadedAdapter* previous, const AdapterBase& base,
                                   const model::Decoder& decoder) {
  return make(read(source, previous, {base.model.shape(), base.folder}), base, decoder);
}

Result<LoadedAdapter> load_adapter(const WeightSource& source, const LoadedAdapter* previous, const model::AdaptedEncoder& base) {
  if (!source.path.empty() && !files::is_folder(source.path)) return load_gguf(source, base);
  const Result<model::PeftFolder> folder = read_of_encoder(source, previous);
  if (!folder) return as_refusal(folder.error());
  auto adapter = model::build_encoder_adapter(*folder->config, *folder->tensors, base);
  if (!adapter) return as_refusal(adapter.error());
  LoadedAdapter loaded{nullptr, folder->config, folder->tensors};
  loaded.of_encoder = std::move(*adapter);
  return loaded;
}

Result<void> hand_out(LoadedAdapter& loaded, const AdapterBase& base) {
  if (base.model.passes() == nullptr) return {};
  auto copies = base.model.passes()->hand_out(*loaded.adapter);
  if (!copies) return copies.error();
  loaded.copies = std::move(*copies);
  return {};
}

}  // namespace braid::app
