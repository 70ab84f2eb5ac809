#define XXH_INLINE_ALL  // NOLINT: as xxhash.h wants it

#include "images/reader.h"

#include "images/decode.h"
#include "images/processors/families.h"
#include "images/read_cache.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <xxhash.h>

namespace braid::images {
namespace {

std::array<std::uint64_t, 2> digest_of(const Pixels& pixels) {
  std::vector<std::int32_t> numbers = {pixels.grid_rows,       pixels.grid_columns,   pixels.overview,
                                       pixels.original_height, pixels.original_width, pixels.vectors};
  for (const PixelTile& tile : pixels.tiles) numbers.insert(numbers.end(), {tile.height, tile.width});
  const std::uint64_t seed = XXH3_64bits(numbers.data(), numbers.size() * sizeof(numbers[0]));
  const XXH128_hash_t hash = XXH3_128bits_withSeed(pixels.values.data(), pixels.values.size() * sizeof(float), seed);
  return {hash.low64, hash.high64};
}

constexpr std::size_t kLatelyBytes = std::size_t{128} << 20;  // some images of the largest kind

// Each `mark` of the text as `own`.
std::string written_as(const std::string& text, std::string_view mark, std::string_view own) {
  std::string out;
  std::size_t begin = 0;
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, begin)) {
    out.append(text, begin, at - begin).append(own);
    begin = at + mark.size();
  }
  return out.append(text, begin);
}

// What stands for one vector in prompts: the processor's mark, or another token's text.
struct VectorToken {
  TokenId id = 0;
  std::string text;
};

class ModelImageReader final : public ImageReader {
 public:
  ModelImageReader(Family family, VectorToken vector) : family_(std::move(family)), vector_(std::move(vector)) {}

  Result<ReadImage> read(std::string_view file, const ImageWish& wish) const override {
    const ReadKey key = ReadKey::of(file, wish);
    if (std::optional<ReadImage> known = lately_.find(key)) return std::move(*known);
    const Result<Picture> picture = decode(file);
    if (!picture) return picture.error();
    Result<Prepared> prepared = family_.processor->prepare(*picture, wish);
    if (!prepared) return prepared.error();
    Pixels& pixels = prepared->pixels;
    pixels.original_height = picture->height;
    pixels.original_width = picture->width;
    pixels.digest = digest_of(pixels);
    if (vector_.text != family_.marks.vector) prepared->text = written_as(prepared->text, family_.marks.vector, vector_.text);
    ReadImage image{std::make_shared<const Pixels>(std::move(pixels)), std::move(prepared->text)};
    lately_.add(key, image);
    return image;
  }

  std::string_view placeholder() const override { return family_.marks.placeholder; }
  TokenId vector_token() const override { return vector_.id; }

 private:
  Family family_;
  VectorToken vector_;
  mutable ReadCache lately_{kLatelyBytes};
};

std::optional<TokenId> only_token(const TextCodec& codec, std::string_view text) {
  const Result<std::vector<TokenId>> ids = codec.encode(text, {.add_special = false, .parse_special = true});
  return ids && ids->size() == 1 ? std::optional(ids->front()) : std::nullopt;
}

// The text of the token that the model's configuration names; empty: it names none that can be written.
std::string named_mark(const Section& model, const TextCodec& codec) {
  for (const char* name : {"image_token_id", "image_token_index"}) {
    const std::optional<double> id = model.number(name);
    if (!id || *id < 0 || *id >= codec.vocab_size()) continue;
    const auto token = static_cast<TokenId>(*id);
    std::string text = codec.token_bytes(token);
    if (only_token(codec, text) == token) return text;
  }
  return {};
}

// For a tokenizer without the processor's mark, as that of a language model which a tower was given later (LLaVA's Vicuna): its last control
// token that neither begins nor ends texts, and that its chat template never writes.
std::optional<VectorToken> spare_token(const TextCodec& codec) {
  const TextEnds ends = codec.text_ends();
  const std::string_view written = codec.template_source(ChatPrompt());
  for (TokenId id = codec.vocab_size() - 1; id >= 0; --id) {
    if (!codec.is_silent(id) || id == ends.bos || id == ends.eos) continue;
    std::string text = codec.token_bytes(id);
    if (text.empty() || written.find(text) != std::string_view::npos || only_token(codec, text) != id) continue;
    return VectorToken{id, std::move(text)};
  }
  return std::nullopt;
}

std::optional<VectorToken> vector_token_of(const Marks& marks, const TextCodec& codec) {
  if (const std::optional<TokenId> own = only_token(codec, marks.vector)) return VectorToken{*own, marks.vector};
  return spare_token(codec);
}

}  // namespace

Result<std::unique_ptr<const ImageReader>> open_reader(Settings settings, const TextCodec& codec) {
  settings.mark = named_mark(settings.model, codec);
  Result<Family> family = make_family(settings);
  if (!family) return family.error();
  std::optional<VectorToken> vector = vector_token_of(family->marks, codec);
  if (!vector)
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("the model's tokenizer has no token '{}', which stands for images, and no other to spare", family->marks.vector), ""};
  return std::make_unique<const ModelImageReader>(std::move(*family), std::move(*vector));
}

Result<Settings> folder_settings(const files::HfFolder& folder) {
  std::array<std::string, 2> texts;
  constexpr std::array<std::string_view, 2> kNames = {"preprocessor_config.json", "processor_config.json"};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    Result<std::optional<std::string>> text = folder.text(kNames[i]);
    if (!text) return text.error();
    texts[i] = std::move(*text).value_or("");
  }
  return Settings::read(texts[0], texts[1], folder.config());
}

}  // namespace braid::images
