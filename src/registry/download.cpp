#include "registry/download.h"

#include "registry/curl_handle.h"
#include "registry/partial_file.h"
#include "registry/stopped.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <list>
#include <new>
#include <optional>
#include <utility>

namespace braid::registry {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kNoteBytes = std::uint64_t{1} << 20;  // between two notes of a range
constexpr auto kTellEvery = std::chrono::milliseconds(100);
constexpr int kPollMs = 250;  // for the network, until somebody may want to stop

struct MultiEnd {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};

// One range on its way.
struct Part {
  PartialFile& file;
  std::size_t range;
  std::string url;
  bool alone = false;  // nothing else is on its way
  CurlHandle handle = nullptr;
  bool judged = false;  // the answer's head has been looked at
  bool whole = false;   // the server knows no ranges: this is all of the file
  std::optional<Error> fault = std::nullopt;
  bool is_final = false;  // the fault: asking again would not help
  std::uint64_t noted = 0;

  const PartialFile::Range& now() const { return file.ranges()[range]; }
};

// What is wrong with an answer to a request for a range.
std::optional<Error> fault_of(long status, const std::string& url, bool& is_final) {
  is_final = status != 206 && status != 200;
  const std::string host = origin_of(url);
  if (!is_final) return std::nullopt;
  if (status == 401 || status == 403)
    return Error{ErrorCode::kUnauthorized, fmt::format("{} does not let us have the file ({})", host, status), ""};
  if (status == 404) return Error{ErrorCode::kNotFound, fmt::format("{} has no such file", host), ""};
  if (status == 416) return Error{ErrorCode::kBadFile, fmt::format("{}: the file is shorter than it was said to be", host), ""};
  is_final = status < 500 && status != 408 && status != 429;
  return Error{ErrorCode::kIo, fmt::format("{} answers with status {}", host, status), ""};
}

std::size_t take(char* bytes, std::size_t one, std::size_t count, void* context) {
  Part& part = *static_cast<Part*>(context);
  if (!part.judged) {
    long status = 0;
    curl_easy_getinfo(part.handle.get(), CURLINFO_RESPONSE_CODE, &status);
    part.fault = fault_of(status, part.url, part.is_final);
    if (!part.fault && status == 200) {
      part.whole = part.alone;
      part.noted = 0;
      if (part.alone) {
        part.file.join();
        part.range = 0;
      } else {
        part.fault = Error{ErrorCode::kUnsupported, fmt::format("{} sends no ranges of a file", origin_of(part.url)), ""};
        part.is_final = true;
      }
    }
    part.judged = true;
  }
  if (part.fault) return 0;
  const std::string_view piece(bytes, one * count);
  const PartialFile::Range& range = part.now();
  if (piece.size() > range.end - range.begin - range.done) {
    part.fault = Error{ErrorCode::kBadFile, fmt::format("{}: the file is longer than it was said to be", origin_of(part.url)), ""};
    part.is_final = true;
    return 0;
  }
  Result<void> written = part.file.append(part.range, piece);
  if (written && part.now().done - part.noted >= kNoteBytes) {
    written = part.file.note(part.range);
    part.noted = part.now().done;
  }
  if (written) return piece.size();
  part.fault = written.error();
  part.is_final = true;
  return 0;
}

struct Waiting {
  std::size_t range;
  int attempts = 0;  // without a byte more
  Clock::time_point from = Clock::time_point::min();
};

class Transfer {
 public:
  Transfer(PartialFile& file, const HttpOptions& http, const DownloadOptions& options, const Download& what, const ProgressSink& progress)
      : file_(file), http_(http), options_(options), what_(what), progress_(progress), headers_(make_list(what.headers)),
        multi_(curl_multi_init()) {
    if (multi_ == nullptr) throw std::bad_alloc();
    for (std::size_t i = 0; i < file.ranges().size(); ++i)
      if (const auto& range = file.ranges()[i]; range.done < range.end - range.begin) waiting_.push_back({i});
  }

  ~Transfer() {
    for (Running& one : running_) curl_multi_remove_handle(multi_.get(), one.part.handle.get());
  }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  Result<void> run() {
    while (!waiting_.empty() || !running_.empty()) {
      begin_some();
      int count = 0;
      curl_multi_perform(multi_.get(), &count);
      if (const Result<void> ended = end_some(); !ended) return ended;
      if (!tell()) return stopped();
      curl_multi_poll(multi_.get(), nullptr, 0, kPollMs, nullptr);
    }
    return {};
  }

 private:
  struct Running {
    Part part;
    Waiting wish;
    std::uint64_t done_before;
  };

  // The first range goes alone until it has a byte: a server without ranges is found out by it.
  int allowed() const { return has_ranges_ ? options_.parallel : 1; }

  void begin_some() {
    for (std::size_t i = 0; i < waiting_.size() && static_cast<int>(running_.size()) < allowed();) {
      if (waiting_[i].from > Clock::now()) {
        ++i;
        continue;
      }
      const Waiting wish = waiting_[i];
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
      begin(wish);
    }
  }

  void begin(const Waiting& wish) {
    Running& running =
        running_.emplace_back(Running{Part{file_, wish.range, what_.url, !has_ranges_}, wish, file_.ranges()[wish.range].done});
    Part& part = running.part;
    part.noted = part.now().done;
    part.handle = make_handle(http_, what_.url, headers_.get(), what_.insecure);
    CURL* curl = part.handle.get();
    const std::string range = fmt::format("{}-{}", part.now().begin + part.now().done, part.now().end - 1);
    curl_easy_setopt(curl, CURLOPT_RANGE, range.c_str());
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &part);
    curl_easy_setopt(curl, CURLOPT_PRIVATE, &running);
    curl_multi_add_handle(multi_.get(), curl);
  }

  Result<void> end_some() {
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      char* context = nullptr;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &context);
      const CURLcode code = message->data.result;
      curl_multi_remove_handle(multi_.get(), message->easy_handle);
      const auto one = std::ranges::find_if(
          running_, [&](const Running& other) { return reinterpret_cast<char*>(const_cast<Running*>(&other)) == context; });
      if (const Result<void> ended = end(*one, code); !ended) return ended;
      running_.erase(one);
    }
    for (const Running& one : running_) {
      if (one.part.whole) waiting_.clear();
      has_ranges_ = has_ranges_ || (one.part.judged && !one.part.fault && !one.part.whole);
    }
    return {};
  }

  // Of one that is over: it is whole, or wanted once more, or the fault of the whole download.
  Result<void> end(Running& running, CURLcode code) {
    Part& part = running.part;
    if (const Result<void> noted = file_.note(part.range); !noted) return noted;
    const PartialFile::Range& range = part.now();
    if (part.whole) waiting_.clear();
    if (range.done == range.end - range.begin) {
      has_ranges_ = !part.whole;
      return {};
    }
    if (!part.judged) {
      long status = 0;
      curl_easy_getinfo(part.handle.get(), CURLINFO_RESPONSE_CODE, &status);
      if (status != 0) part.fault = fault_of(status, what_.url, part.is_final);
    }
    const bool is_short = !part.fault && code == CURLE_OK;
    if (!part.fault)
      part.fault = is_short ? Error{ErrorCode::kBadFile, fmt::format("{}: the file ends too early", origin_of(what_.url)), ""}
                            : transfer_error(code, what_.url);
    Waiting again = running.wish;
    again.range = part.range;
    again.attempts = !part.whole && range.done > running.done_before ? 1 : again.attempts + 1;
    const bool hopeless = code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_TOO_MANY_REDIRECTS;
    if (part.is_final || hopeless || again.attempts >= options_.attempts) return *part.fault;
    again.from = Clock::now() + options_.first_pause * (1 << std::min(again.attempts - 1, 6));
    waiting_.push_back(again);
    return {};
  }

  bool tell() {
    if (Clock::now() - told_ < kTellEvery) return true;
    told_ = Clock::now();
    return progress_({fmt::format("pulling {}", what_.digest.digits().substr(0, 12)), what_.digest.text(), what_.bytes, file_.done()});
  }

  PartialFile& file_;
  const HttpOptions& http_;
  const DownloadOptions& options_;
  const Download& what_;
  const ProgressSink& progress_;
  const CurlList headers_;
  const std::unique_ptr<CURLM, MultiEnd> multi_;
  std::vector<Waiting> waiting_;
  std::list<Running> running_;  // whose addresses their handles know
  bool has_ranges_ = false;
  Clock::time_point told_ = Clock::now() - kTellEvery;
};

}  // namespace

Result<void> download(const BlobStore& blobs, const HttpOptions& http, const DownloadOptions& options, const Download& what,
                      const ProgressSink& progress) {
  const std::string status = fmt::format("pulling {}", what.digest.digits().substr(0, 12));
  Result<std::optional<PartialFile>> partial = PartialFile::open(blobs, what.digest, what.bytes, options.range_bytes);
  if (!partial) return partial.error();
  if (*partial) {
    if (const Result<void> done = Transfer(**partial, http, options, what, progress).run(); !done) return done;
    if (!progress({"verifying sha256 digest", "", 0, 0})) return stopped();
    if (const Result<void> published = (*partial)->publish(blobs, what.digest); !published) return published;
  }
  if (!progress({status, what.digest.text(), what.bytes, what.bytes})) return stopped();
  return {};
}

}  // namespace braid::registry
