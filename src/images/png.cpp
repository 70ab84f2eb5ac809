#include "images/exif.h"
#include "images/formats.h"

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstring>
#include <memory>
#include <png.h>
#include <string>
#include <utility>
#include <vector>

namespace braid::images {
namespace {

// What libpng works on, which a jump leaves as it is.
struct PngReader {
  std::string_view rest;  // of the file
  std::array<char, 200> message{};
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::vector<png_bytep> rows;

  PngReader() = default;
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
};

[[noreturn]] void leave_png(png_structp png, png_const_charp message) {
  auto* reader = static_cast<PngReader*>(png_get_error_ptr(png));
  std::strncpy(reader->message.data(), message, reader->message.size() - 1);
  png_longjmp(png, 1);
}

void ignore_warning(png_structp, png_const_charp) {}

void give_bytes(png_structp png, png_bytep to, std::size_t count) {
  auto* reader = static_cast<PngReader*>(png_get_io_ptr(png));
  if (reader->rest.size() < count) png_error(png, "it ends too early");
  std::memcpy(to, reader->rest.data(), count);
  reader->rest.remove_prefix(count);
}

// False: reader.message says why. No object with a destructor lives in here.
bool read_header(PngReader& reader, const DecodeLimits& limits) {
  reader.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, leave_png, ignore_warning);
  if (reader.png == nullptr) return false;
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  reader.info = png_create_info_struct(reader.png);
  if (reader.info == nullptr) return false;
  const auto side = static_cast<png_uint_32>(limits.side);
  png_set_user_limits(reader.png, side, side);
  png_set_chunk_malloc_max(reader.png, 1U << 20U);
  png_set_chunk_cache_max(reader.png, 64);
  png_set_read_fn(reader.png, &reader, give_bytes);
  png_read_info(reader.png, reader.info);
  return true;
}

// Of any kind of file, 8 bits of R, G and B.
bool read_rows(PngReader& reader) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  png_set_strip_16(reader.png);
  png_set_palette_to_rgb(reader.png);
  png_set_expand_gray_1_2_4_to_8(reader.png);
  png_set_gray_to_rgb(reader.png);
  png_set_strip_alpha(reader.png);
  png_set_interlace_handling(reader.png);
  png_read_update_info(reader.png, reader.info);
  if (png_get_rowbytes(reader.png, reader.info) != std::size_t{png_get_image_width(reader.png, reader.info)} * 3)
    png_error(reader.png, "its pixels are of an unknown kind");
  png_read_image(reader.png, reader.rows.data());
  png_read_end(reader.png, reader.info);  // data that follow the picture may say how it is turned
  return true;
}

int orientation_of(PngReader& reader) {
  png_uint_32 size = 0;
  png_bytep exif = nullptr;
  if (png_get_eXIf_1(reader.png, reader.info, &size, &exif) == 0 || exif == nullptr) return 1;
  return orientation_in({reinterpret_cast<const char*>(exif), size});
}

}  // namespace

Result<StoredPicture> read_png(std::string_view file, const DecodeLimits& limits) {
  const auto reader = std::make_unique<PngReader>();
  reader->rest = file;
  if (!read_header(*reader, limits)) {
    const std::string why = reader->message.data();
    if (why.find("limit") != std::string::npos) return invalid_argument("the image is too large: " + why);
    return broken("PNG", why);
  }
  const std::int64_t height = png_get_image_height(reader->png, reader->info);
  const std::int64_t width = png_get_image_width(reader->png, reader->info);
  const Result<void> fits = check_size(height, width, limits);
  if (!fits) return fits.error();
  StoredPicture out{Picture::empty(static_cast<std::int32_t>(height), static_cast<std::int32_t>(width)), 1};
  for (std::int32_t y = 0; y < out.picture.height; ++y) reader->rows.push_back(out.picture.row(y));
  if (!read_rows(*reader)) return broken("PNG", reader->message.data());
  out.orientation = orientation_of(*reader);
  return out;
}

}  // namespace braid::images
