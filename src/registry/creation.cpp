#include "registry/creation.h"

#include "registry/json.h"
#include "registry/manifest.h"
#include "registry/settings.h"
#include "registry/stopped.h"
#include "registry/weights_facts.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fmt/format.h>
#include <optional>
#include <utility>
#include <vector>

namespace braid::registry {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kCopyBytes = std::size_t{1} << 20;

bool is_adapter(const Layer& one) { return one.is(layer::kAdapter) || one.name.starts_with(layer::kAdapterFolder); }
bool is_weights(const Layer& one) { return one.is(layer::kModel) || one.is(layer::kProjector) || one.is(layer::kFile) || is_adapter(one); }

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// Ollama's writing of a count: 1.2B, 134.5M.
std::string count_text(std::int64_t count) {
  const auto number = static_cast<double>(count);
  if (number >= 1e9) return fmt::format("{:.1f}B", number / 1e9);
  if (number >= 1e6) return fmt::format("{:.1f}M", number / 1e6);
  return fmt::format("{:.1f}K", number / 1e3);
}

class Creation {
 public:
  Creation(Library& library, const WeightTools& tools, const ModelRecipe& recipe, const ProgressSink& progress)
      : library_(library), tools_(tools), recipe_(recipe), progress_(progress) {}

  Result<void> run() {
    const Result<ModelRef> ref = ModelRef::parse(recipe_.model);
    if (!ref) return ref.error();
    if (recipe_.from.empty() == recipe_.files.empty())
      return invalid_argument("a model is made 'from' another one, or of 'files': give one of the two", "from");
    if (const Result<void> checked = check_settings(recipe_.settings); !checked) return checked;
    if (tools_.check_template && !recipe_.settings.template_text.empty())
      if (const Result<void> checked = tools_.check_template(recipe_.settings.template_text); !checked) return checked;
    if (const Result<void> taken = recipe_.from.empty() ? take_files() : take_from(); !taken) return taken;
    if (!recipe_.quantize.empty())
      if (const Result<void> done = quantize(); !done) return done;
    if (const Result<void> taken = take_adapters(); !taken) return taken;
    if (const Result<void> added = add_settings(); !added) return added;
    if (const Result<void> added = add_config(); !added) return added;
    if (!say("writing manifest")) return stopped();
    if (const Result<void> published = library_.publish(*ref, write_manifest({*config_, layers_})); !published) return published;
    static_cast<void>(say("success"));
    return {};
  }

 private:
  bool say(std::string status) const { return progress_({std::move(status), "", 0, 0}); }

  Result<void> take_from() {
    Result<CatalogueEntry> found = library_.find(recipe_.from);
    if (!found) {
      Error error = found.error();
      error.message += "; nothing is downloaded for it: pull it first";
      error.param = "from";
      return error;
    }
    if (!say("reading model metadata")) return stopped();
    parent_ = found->model.name;
    weights_ = found->model.path;
    Result<ModelSettings> settings = read_settings(*found);
    if (!settings) return settings.error();
    inherited_ = std::move(*settings);
    if (!found->origin.empty()) return copy_weights(found->model.path);
    const Result<ModelRef> ref = ModelRef::parse(parent_);
    if (!ref) return ref.error();
    const Result<StoredManifest> stored = library_.manifests().read(*ref);
    if (!stored) return stored.error();
    for (const Layer& one : stored->manifest.layers) {
      if (!is_weights(one)) continue;
      if (!say("using existing layer " + one.digest.text())) return stopped();
      layers_.push_back(one);
    }
    return {};
  }

  // Weights of a watched folder become blobs.
  Result<void> copy_weights(const std::string& path) {
    std::error_code failure;
    if (!fs::is_directory(path, failure)) {
      if (path.find("-00001-of-") != std::string::npos)
        return invalid_argument("a split file cannot be made from: join it first (`braid merge`)", "from");
      return add_layer(layer_type(layer::kModel), copy_file(path), "");
    }
    for (fs::recursive_directory_iterator entry(path, failure); !failure && entry != fs::recursive_directory_iterator();
         entry.increment(failure)) {
      const std::string name = fs::relative(entry->path(), path, failure).string();
      if (!entry->is_regular_file(failure) || !is_file_name(name)) continue;
      if (const Result<void> added = add_layer(layer_type(layer::kFile), copy_file(entry->path().string()), name); !added) return added;
    }
    return {};
  }

  Result<Digest> copy_file(const std::string& path) const {
    const Result<OpenFile> file = OpenFile::read(path);
    if (!file) return file.error();
    const Result<std::uint64_t> total = file->size();
    if (!total) return total.error();
    Result<NewBlob> blob = library_.blobs().begin();
    if (!blob) return blob.error();
    std::vector<char> piece(kCopyBytes);
    for (std::uint64_t at = 0;;) {
      const Result<std::size_t> size = file->read_at(piece, at);
      if (!size) return size.error();
      if (*size == 0) break;
      if (const Result<void> written = blob->append({piece.data(), *size}); !written) return written.error();
      at += *size;
      if (!progress_({fmt::format("copying file {}", fs::path(path).filename().string()), "", *total, at})) return stopped();
    }
    return blob->keep();
  }

  Result<void> take_files() {
    bool is_folder = false;
    for (const auto& [name, digest] : recipe_.files) is_folder = is_folder || name == "config.json";
    for (const auto& [name, text] : recipe_.files) {
      const Result<Digest> digest = Digest::parse(text);
      if (!digest) return digest.error();
      if (!is_file_name(name)) return invalid_argument(fmt::format("'{}' is no plain name of a file", name), "files");
      if (!library_.blobs().size_of(*digest))
        return invalid_argument(fmt::format("{} ({}) has not been uploaded: POST it to /api/blobs/{} first", name, text, text), "files");
      const Result<void> added = is_folder ? add_layer(layer_type(layer::kFile), *digest, name) : add_gguf(name, *digest);
      if (!added) return added;
    }
    if (is_folder && !recipe_.quantize.empty()) return lay_out_files();
    return {};
  }

  // Beside those of the model that it is made from. In GGUF each is a file, in PEFT's form there is one, of two files.
  Result<void> take_adapters() {
    std::size_t parts = 0;
    for (const auto& [name, text] : recipe_.adapters) {
      const Result<Digest> digest = Digest::parse(text);
      if (!digest) return digest.error();
      if (!library_.blobs().size_of(*digest))
        return invalid_argument(fmt::format("{} ({}) has not been uploaded: POST it to /api/blobs/{} first", name, text, text), "adapters");
      const bool is_part = name == kAdapterConfig || name == kAdapterTensors;
      if (!is_part && !is_gguf(library_.blobs().path_of(*digest)))
        return invalid_argument(fmt::format("{} is no adapter: that is a GGUF file, or {} and {}", name, kAdapterConfig, kAdapterTensors),
                                "adapters");
      const std::string place = is_part ? std::string(layer::kAdapterFolder) + name : "";
      if (is_part && std::ranges::find(layers_, place, &Layer::name) != layers_.end())
        return invalid_argument("a model has one adapter in PEFT's form at most", "adapters");
      parts += is_part ? 1 : 0;
      const Result<void> added = add_layer(layer_type(is_part ? layer::kFile : layer::kAdapter), digest, place);
      if (!added) return added;
    }
    if (parts != 1) return {};
    return invalid_argument(fmt::format("an adapter in PEFT's form has two files, {} and {}", kAdapterConfig, kAdapterTensors), "adapters");
  }

  static bool is_gguf(const std::string& path) {
    const Result<OpenFile> file = OpenFile::read(path);
    std::array<char, 4> magic{};
    const Result<std::size_t> size = file ? file->read_at(magic, 0) : Result<std::size_t>(0);
    return size && *size == magic.size() && std::string_view(magic.data(), magic.size()) == "GGUF";
  }

  Result<void> add_gguf(const std::string& name, const Digest& digest) {
    const std::string path = library_.blobs().path_of(digest);
    if (name.find("-of-") != std::string::npos && name.ends_with(".gguf")) return add_layer(layer_type(layer::kFile), digest, name);
    const Result<WeightsFacts> read = read_weights(path);
    if (!read) return invalid_argument(fmt::format("{} is no GGUF file that can be used: {}", name, read.error().message), "files");
    const bool projects = read->facts.architecture == "clip";
    if (!projects && !weights_.empty()) return invalid_argument("'files' has more than one GGUF file of weights", "files");
    if (!projects) weights_ = path;
    return add_layer(layer_type(projects ? layer::kProjector : layer::kModel), digest, "");
  }

  // A folder of links, for the tool that reads it.
  Result<void> lay_out_files() {
    Result<NewBlob> place = library_.blobs().begin();
    if (!place) return place.error();
    scratch_ = place->path() + ".folder";
    for (const Layer& one : layers_) {
      const fs::path link = fs::path(scratch_) / one.name;
      if (const Result<void> made = make_folders(link.parent_path().string()); !made) return made;
      std::error_code failure;
      fs::create_symlink(fs::absolute(library_.blobs().path_of(one.digest), failure), link, failure);
      if (failure) return Error{ErrorCode::kIo, fmt::format("cannot make the link {}: {}", link.string(), failure.message()), ""};
    }
    weights_ = scratch_;
    return {};
  }

  Result<void> quantize() {
    if (!tools_.quantize) return invalid_argument("'quantize' is not supported here", "quantize");
    if (weights_.empty()) return invalid_argument("'quantize' wants one file or one folder of weights", "quantize");
    Result<NewBlob> blob = library_.blobs().begin();
    if (!blob) return blob.error();
    const std::string type = lower(recipe_.quantize);
    const auto go_on = [&](std::uint64_t done, std::uint64_t total) {
      return progress_({fmt::format("quantizing to {}", type), "", total, done});
    };
    const Result<void> written = tools_.quantize(weights_, blob->path(), type, go_on);
    std::error_code ignored;
    if (!scratch_.empty()) fs::remove_all(scratch_, ignored);
    if (!written) return written;
    Result<Digest> digest = blob->adopt();
    if (!digest) return digest.error();
    std::erase_if(layers_, [](const Layer& one) { return !is_adapter(one) && (one.is(layer::kModel) || one.is(layer::kFile)); });
    return add_layer(layer_type(layer::kModel), *digest, "");
  }

  Result<void> add_settings() {
    const ModelSettings& own = recipe_.settings;
    const std::string& form = own.template_text.empty() ? inherited_.template_text : own.template_text;
    const std::string& system = own.system.empty() && !recipe_.clears_system ? inherited_.system : own.system;
    ValueDict parameters = inherited_.parameters;
    for (const auto& [name, value] : own.parameters) {
      if (const Value* known = find_member(parameters, name); known != nullptr)
        *find_member(parameters, name) = value;
      else
        parameters.emplace_back(name, value);
    }
    const ValueList& messages = own.messages.empty() ? inherited_.messages : own.messages;
    std::vector<std::pair<std::string_view, std::string>> texts = {{layer::kTemplate, form}, {layer::kSystem, system}};
    for (const std::string& licence : inherited_.licences) texts.emplace_back(layer::kLicence, licence);
    for (const std::string& licence : own.licences) texts.emplace_back(layer::kLicence, licence);
    texts.emplace_back(layer::kParameters, parameters.empty() ? "" : to_json(std::move(parameters)));
    texts.emplace_back(layer::kMessages, messages.empty() ? "" : to_json(messages));
    for (const auto& [kind, text] : texts)
      if (!text.empty())
        if (const Result<void> added = add_layer(layer_type(kind), library_.blobs().put(text), ""); !added) return added;
    return {};
  }

  Result<void> add_layer(std::string type, const Result<Digest>& digest, std::string name) {
    if (!digest) return digest.error();
    const std::optional<std::uint64_t> bytes = library_.blobs().size_of(*digest);
    if (!bytes) return Error{ErrorCode::kNotFound, fmt::format("{} is not here", digest->text()), ""};
    if (!say("creating new layer " + digest->text())) return stopped();
    layers_.push_back({std::move(type), *digest, *bytes, std::move(name)});
    return {};
  }

  Result<void> add_config() {
    ValueDict config{{"parent", parent_}, {"architecture", "amd64"}, {"os", "linux"}};
    const auto weights = std::ranges::find_if(layers_, [](const Layer& one) { return one.is(layer::kModel); });
    if (weights != layers_.end()) {
      const Result<WeightsFacts> read = read_weights(library_.blobs().path_of(weights->digest));
      if (!read) return read.error();
      config.emplace_back("model_format", read->facts.format);
      config.emplace_back("model_family", read->facts.architecture);
      config.emplace_back("model_families", ValueList{read->facts.architecture});
      config.emplace_back("model_type", count_text(read->facts.parameters));
      config.emplace_back("file_type", read->facts.quantisation);
    } else {
      config.emplace_back("model_format", "safetensors");
    }
    ValueList digests;
    for (const Layer& one : layers_) digests.emplace_back(one.digest.text());
    config.emplace_back("rootfs", ValueDict{{"type", "layers"}, {"diff_ids", std::move(digests)}});
    const std::string text = to_json(std::move(config));
    const Result<Digest> digest = library_.blobs().put(text);
    if (!digest) return digest.error();
    config_ = Layer{std::string(kConfigType), *digest, text.size(), ""};
    return {};
  }

  Library& library_;
  const WeightTools& tools_;
  const ModelRecipe& recipe_;
  const ProgressSink& progress_;
  std::string parent_;
  std::string weights_;  // the path that `quantize` reads
  std::string scratch_;  // a folder that goes afterwards
  ModelSettings inherited_;
  std::vector<Layer> layers_;
  std::optional<Layer> config_;
};

}  // namespace

Result<void> create_model(Library& library, const WeightTools& tools, const ModelRecipe& recipe, const ProgressSink& progress) {
  return Creation(library, tools, recipe, progress).run();
}

}  // namespace braid::registry
