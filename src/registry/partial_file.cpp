#include "registry/partial_file.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace braid::registry {
namespace {

constexpr std::size_t kMostNoteBytes = std::size_t{64} << 20;

bool is_still_there(const OpenFile& file, std::uint64_t node) {
  struct stat status {};
  return ::stat(file.path().c_str(), &status) == 0 && status.st_ino == node;
}

// Two numbers and the end of the line; a line that a killed process has not finished is none.
std::optional<std::pair<std::uint64_t, std::uint64_t>> read_line(std::string_view line) {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  const char* end = line.data() + line.size();
  const auto [middle, wrong] = std::from_chars(line.data(), end, first);
  if (wrong != std::errc() || middle == end || *middle != ' ') return std::nullopt;
  const auto [last, wrong_too] = std::from_chars(middle + 1, end, second);
  if (wrong_too != std::errc() || last != end) return std::nullopt;
  return std::pair(first, second);
}

}  // namespace

Result<std::optional<PartialFile>> PartialFile::open(const BlobStore& blobs, const Digest& digest, std::uint64_t bytes,
                                                     std::uint64_t range_bytes) {
  for (;;) {
    if (blobs.size_of(digest) == bytes) return std::optional<PartialFile>();
    Result<OpenFile> file = OpenFile::read_write(blobs.partial_path_of(digest));
    if (!file) return file.error();
    if (const Result<void> locked = file->lock(); !locked) return locked.error();
    const Result<std::uint64_t> node = file->node();
    if (!node) return node.error();
    if (!is_still_there(*file, *node)) continue;  // whoever had it has finished or removed it
    Result<OpenFile> notes = OpenFile::read_write(blobs.partial_path_of(digest) + ".notes");
    if (!notes) return notes.error();
    PartialFile partial(std::move(*file), std::move(*notes));
    if (const Result<void> read = partial.read_notes(bytes, range_bytes); !read) return read.error();
    return std::optional(std::move(partial));
  }
}

void PartialFile::cut(std::uint64_t bytes, std::uint64_t range_bytes) {
  ranges_.clear();
  for (std::uint64_t begin = 0; begin < bytes; begin += range_bytes) ranges_.push_back({begin, std::min(bytes, begin + range_bytes)});
}

// The first line says how the file is cut; under other numbers nothing of before counts.
Result<void> PartialFile::read_notes(std::uint64_t bytes, std::uint64_t range_bytes) {
  cut(bytes, range_bytes);
  const Result<std::string> text = read_small_file(notes_.path(), kMostNoteBytes);
  const std::string head = fmt::format("{} {}\n", bytes, range_bytes);
  const Result<std::uint64_t> size = file_.size();
  if (!size) return size.error();
  if (!text || !text->starts_with(head) || *size != bytes) {
    for (const Result<void>& done : {notes_.resize(0), file_.resize(0), file_.resize(bytes), notes_.write_at(head, 0)})
      if (!done) return done;
    notes_end_ = head.size();
    return {};
  }
  std::string_view rest = std::string_view(*text).substr(head.size());
  for (std::size_t end = 0; (end = rest.find('\n')) != std::string_view::npos; rest.remove_prefix(end + 1)) {
    const auto note = read_line(rest.substr(0, end));
    if (note && note->first < ranges_.size() && note->second <= ranges_[note->first].end - ranges_[note->first].begin)
      ranges_[note->first].done = note->second;
  }
  notes_end_ = text->size() - rest.size();
  return notes_.resize(notes_end_);
}

std::uint64_t PartialFile::done() const {
  std::uint64_t bytes = 0;
  for (const Range& range : ranges_) bytes += range.done;
  return bytes;
}

Result<void> PartialFile::append(std::size_t index, std::string_view bytes) {
  Range& range = ranges_[index];
  if (const Result<void> written = file_.write_at(bytes, range.begin + range.done); !written) return written;
  range.done += bytes.size();
  return {};
}

void PartialFile::join() {
  if (!ranges_.empty()) ranges_ = {{0, ranges_.back().end}};
  is_joined_ = true;
  static_cast<void>(notes_.resize(0));  // those of before are of other ranges
}

Result<void> PartialFile::note(std::size_t index) {
  if (is_joined_) return {};
  const std::string line = fmt::format("{} {}\n", index, ranges_[index].done);
  if (const Result<void> written = notes_.write_at(line, notes_end_); !written) return written;
  notes_end_ += line.size();
  return {};
}

Result<void> PartialFile::publish(const BlobStore& blobs, const Digest& digest) {
  const Result<Digest> found = digest_of_file(file_.path());
  if (!found) return found.error();
  if (*found != digest) {
    ::unlink(notes_.path().c_str());
    ::unlink(file_.path().c_str());
    return Error{ErrorCode::kBadFile, fmt::format("what came has the digest {}, not {}: it has been removed", found->text(), digest.text()),
                 ""};
  }
  if (const Result<void> synced = file_.sync(); !synced) return synced;
  if (const Result<void> published = registry::publish(file_.path(), blobs.path_of(digest)); !published) return published;
  ::unlink(notes_.path().c_str());
  return {};
}

}  // namespace braid::registry
