#include "registry/blob_store.h"

#include <atomic>
#include <ctime>
#include <filesystem>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace braid::registry {
namespace {

constexpr std::string_view kDraft = ".new-";

constexpr std::int64_t kYoungSeconds = 60;  // between a draft's making and its lock

std::int64_t age_of(const std::filesystem::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? std::time(nullptr) - status.st_mtime : 0;
}

// What has been left by a process that is gone: a writer holds the lock of its file.
void remove_left_drafts(const std::string& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (!entry.path().filename().string().starts_with(kDraft) || age_of(entry.path()) < kYoungSeconds) continue;
    const Result<OpenFile> file = OpenFile::read(entry.path().string());
    if (file && file->try_lock()) std::filesystem::remove_all(entry.path(), ignored);
  }
}

}  // namespace

NewBlob::~NewBlob() {
  if (!kept_ && !file_.path().empty()) ::unlink(file_.path().c_str());
}

Result<void> NewBlob::append(std::string_view bytes) {
  if (const Result<void> written = file_.write_at(bytes, size_); !written) return written;
  size_ += bytes.size();
  hasher_->add(bytes);
  return {};
}

Result<Digest> NewBlob::keep(const std::optional<Digest>& wanted) {
  const Digest found = hasher_->finish();
  if (wanted && found != *wanted)
    return invalid_argument(fmt::format("the bytes have the digest {}, not {}", found.text(), wanted->text()), "digest");
  return publish_as(found);
}

Result<Digest> NewBlob::adopt() {
  Result<Digest> found = digest_of_file(file_.path());
  if (!found) return found;
  Result<OpenFile> written = OpenFile::read_write(file_.path());  // it may be another file than the one that was opened
  if (!written) return written.error();
  if (const Result<void> synced = written->sync(); !synced) return synced.error();
  return publish_as(*found);
}

Result<Digest> NewBlob::publish_as(const Digest& digest) {
  if (const Result<void> synced = file_.sync(); !synced) return synced.error();
  if (const Result<void> published = publish(file_.path(), folder_ + "/" + digest.file_name()); !published) return published.error();
  kept_ = true;
  return digest;
}

Result<BlobStore> BlobStore::open(const std::string& folder) {
  if (const Result<void> made = make_folders(folder); !made) return made.error();
  remove_left_drafts(folder);
  return BlobStore(folder);
}

std::optional<std::uint64_t> BlobStore::size_of(const Digest& digest) const {
  struct stat status {};
  if (::stat(path_of(digest).c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return static_cast<std::uint64_t>(status.st_size);
}

Result<NewBlob> BlobStore::begin() const {
  static std::atomic<unsigned> count{0};
  Result<OpenFile> file = OpenFile::read_write(fmt::format("{}/{}{}-{}", folder_, kDraft, ::getpid(), count++));
  if (!file) return file.error();
  if (const Result<void> emptied = file->resize(0); !emptied) return emptied.error();
  if (!file->try_lock()) return Error{ErrorCode::kIo, fmt::format("{} belongs to another process", file->path()), ""};
  return NewBlob(std::move(*file), folder_);
}

Result<Digest> BlobStore::put(std::string_view bytes) const {
  const Digest digest = digest_of(bytes);
  if (size_of(digest) == bytes.size()) return digest;
  Result<NewBlob> blob = begin();
  if (!blob) return blob.error();
  if (const Result<void> written = blob->append(bytes); !written) return written.error();
  return blob->keep(digest);
}

void BlobStore::remove(const Digest& digest) const { ::unlink(path_of(digest).c_str()); }

void BlobStore::remove_all_but(const std::set<Digest>& used, std::int64_t seconds) const {
  constexpr std::size_t kNameLength = 71;  // a partial one has more
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, ignored)) {
    const Result<Digest> digest = Digest::parse(entry.path().filename().string().substr(0, kNameLength));
    if (digest && !used.contains(*digest) && age_of(entry.path()) >= seconds) ::unlink(entry.path().c_str());
  }
}

}  // namespace braid::registry
