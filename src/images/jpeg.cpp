#include "images/exif.h"
#include "images/formats.h"

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <fmt/format.h>
#include <jerror.h>
#include <jpeglib.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace braid::images {
namespace {

constexpr int kMostScans = 500;  // of a progressive file: each costs a pass over all of its coefficients

// libjpeg reports by calling back, and the callback must not return: it jumps to where the library was called.
struct JpegFault {
  jpeg_error_mgr manager{};
  std::jmp_buf where{};
  std::array<char, JMSG_LENGTH_MAX> message{};
};

// The library's object and what it points to, which a jump leaves as they are.
struct JpegReader {
  JpegFault fault;
  jpeg_progress_mgr progress{};
  jpeg_decompress_struct info{};
  bool created = false;

  JpegReader() = default;
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;
  ~JpegReader() {
    if (created) jpeg_destroy_decompress(&info);
  }
};

[[noreturn]] void leave(j_common_ptr info) {
  auto* fault = reinterpret_cast<JpegFault*>(info->err);
  fault->manager.format_message(info, fault->message.data());
  std::longjmp(fault->where, 1);
}

// Of warnings only the one about the file's end counts: the library would go on with grey.
void hear(j_common_ptr info, int level) {
  if (level < 0 && info->err->msg_code == JWRN_JPEG_EOF) leave(info);
}

void limit_scans(j_common_ptr info) {
  const auto* reader = reinterpret_cast<j_decompress_ptr>(info);
  if (reader->input_scan_number <= kMostScans) return;
  auto* fault = reinterpret_cast<JpegFault*>(info->err);
  std::snprintf(fault->message.data(), fault->message.size(), "it has more than %d scans", kMostScans);
  std::longjmp(fault->where, 1);
}

// False: fault.message says why. No object with a destructor lives in here.
bool read_header(JpegReader& reader, std::string_view file) {
  reader.info.err = jpeg_std_error(&reader.fault.manager);
  reader.fault.manager.error_exit = leave;
  reader.fault.manager.emit_message = hear;
  reader.progress.progress_monitor = limit_scans;
  if (setjmp(reader.fault.where) != 0) return false;
  jpeg_create_decompress(&reader.info);
  reader.created = true;
  reader.info.progress = &reader.progress;
  jpeg_mem_src(&reader.info, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_save_markers(&reader.info, JPEG_APP0 + 1, 0xFFFF);
  jpeg_read_header(&reader.info, TRUE);
  return true;
}

// Reads all rows into `rows`, each of `stride` bytes.
bool read_rows(JpegReader& reader, std::uint8_t* rows, std::size_t stride) {
  if (setjmp(reader.fault.where) != 0) return false;
  jpeg_start_decompress(&reader.info);
  while (reader.info.output_scanline < reader.info.output_height) {
    JSAMPROW row = rows + reader.info.output_scanline * stride;
    jpeg_read_scanlines(&reader.info, &row, 1);
  }
  jpeg_finish_decompress(&reader.info);
  return true;
}

// a × b / 255, rounded
std::uint8_t scaled(std::uint32_t a, std::uint32_t b) {
  const std::uint32_t product = a * b + 128;
  return static_cast<std::uint8_t>(((product >> 8U) + product) >> 8U);
}

// From the components that were stored to R, G and B. Four of them are inks, which such files hold inverted: full is none.
void fill(Picture& picture, const std::vector<std::uint8_t>& stored, std::size_t components) {
  std::uint8_t* to = picture.values.data();
  for (std::size_t at = 0; at + components <= stored.size(); at += components, to += 3) {
    if (components == 1) {
      std::fill_n(to, 3, stored[at]);
      continue;
    }
    const std::uint32_t light = stored[at + 3];
    for (std::size_t c = 0; c < 3; ++c) to[c] = static_cast<std::uint8_t>(light - scaled(255U - stored[at + c], light));
  }
}

int orientation_of(const jpeg_decompress_struct& info) {
  for (const jpeg_marker_struct* marker = info.marker_list; marker != nullptr; marker = marker->next) {
    const std::string_view data(reinterpret_cast<const char*>(marker->data), marker->data_length);
    if (marker->marker == JPEG_APP0 + 1 && data.starts_with("Exif")) return orientation_in(data);
  }
  return 1;
}

}  // namespace

Result<StoredPicture> read_jpeg(std::string_view file, const DecodeLimits& limits) {
  const auto reader = std::make_unique<JpegReader>();
  if (!read_header(*reader, file)) return broken("JPEG", reader->fault.message.data());
  jpeg_decompress_struct& info = reader->info;
  const Result<void> fits = check_size(info.image_height, info.image_width, limits);
  if (!fits) return fits.error();
  if (info.num_components != 1 && info.num_components != 3 && info.num_components != 4)
    return broken("JPEG", fmt::format("it has {} components", info.num_components));
  const auto components = static_cast<std::size_t>(info.num_components);
  info.out_color_space = components == 1 ? JCS_GRAYSCALE : components == 3 ? JCS_RGB : JCS_CMYK;
  StoredPicture out{Picture::empty(static_cast<std::int32_t>(info.image_height), static_cast<std::int32_t>(info.image_width)),
                    orientation_of(info)};
  const std::size_t stride = std::size_t{info.image_width} * components;
  if (components == 3) {
    if (!read_rows(*reader, out.picture.values.data(), stride)) return broken("JPEG", reader->fault.message.data());
    return out;
  }
  std::vector<std::uint8_t> stored(stride * info.image_height);
  if (!read_rows(*reader, stored.data(), stride)) return broken("JPEG", reader->fault.message.data());
  fill(out.picture, stored, components);
  return out;
}

}  // namespace braid::images
