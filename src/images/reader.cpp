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

class ModelImageReader final : public ImageReader {
 public:
  ModelImageReader(Family family, TokenId token) : family_(std::move(family)), token_(token) {}

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
    ReadImage image{std::make_shared<const Pixels>(std::move(pixels)), std::move(prepared->text)};
    lately_.add(key, image);
    return image;
  }

  std::string_view placeholder() const override { return family_.marks.placeholder; }
  TokenId vector_token() const override { return token_; }

 private:
  Family family_;
  TokenId token_;
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

}  // namespace

Result<std::unique_ptr<const ImageReader>> open_reader(Settings settings, const TextCodec& codec) {
  settings.mark = named_mark(settings.model, codec);
  Result<Family> family = make_family(settings);
  if (!family) return family.error();
  const std::optional<TokenId> token = only_token(codec, family->marks.vector);
  if (!token)
    return Error{ErrorCode::kUnsupported,
                 fmt::format("the model's tokenizer has no token '{}', which stands for images", family->marks.vector), ""};
  return std::make_unique<const ModelImageReader>(std::move(*family), *token);
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
