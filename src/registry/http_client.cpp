#include "registry/http_client.h"

#include "registry/curl_handle.h"
#include "registry/durable_file.h"
#include "registry/stopped.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <new>
#include <optional>

namespace braid::registry {
namespace {

constexpr long kMostRedirections = 10;
constexpr long kLeastBytesPerSecond = 16;

// One process initialises the library once, before its first handle.
void initialise() {
  static const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (code != CURLE_OK) throw std::bad_alloc();
}

struct Taking {
  HttpAnswer answer;
  std::size_t most;
  const std::function<bool(std::string_view)>* on_body;
  CURL* handle = nullptr;
  bool too_large = false;
  bool is_unwanted = false;
};

std::size_t take_body(char* bytes, std::size_t one, std::size_t count, void* context) {
  auto& taking = *static_cast<Taking*>(context);
  long status = 0;
  if (*taking.on_body) curl_easy_getinfo(taking.handle, CURLINFO_RESPONSE_CODE, &status);
  if (status == 200) {
    taking.is_unwanted = !(*taking.on_body)({bytes, one * count});
    return taking.is_unwanted ? 0 : one * count;
  }
  taking.too_large = taking.answer.body.size() + one * count > taking.most;
  if (taking.too_large) return 0;
  taking.answer.body.append(bytes, one * count);
  return one * count;
}

std::size_t take_header(char* bytes, std::size_t one, std::size_t count, void* context) {
  constexpr std::size_t kMostHeaders = 200;
  auto& headers = static_cast<Taking*>(context)->answer.headers;
  std::string_view line(bytes, one * count);
  if (line.starts_with("HTTP/")) headers.clear();  // of a redirection before
  while (line.ends_with('\n') || line.ends_with('\r') || line.ends_with(' ')) line.remove_suffix(1);
  const std::size_t colon = line.find(':');
  if (colon != std::string_view::npos && headers.size() < kMostHeaders) {
    std::string name(line.substr(0, colon));
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    line.remove_prefix(colon + 1);
    while (line.starts_with(' ')) line.remove_prefix(1);
    headers.emplace_back(std::move(name), std::string(line));
  }
  return one * count;
}

struct Upload {
  const OpenFile* file;
  std::uint64_t at = 0;
  const std::function<bool(std::uint64_t)>* on_upload;
};

std::size_t give_body(char* room, std::size_t one, std::size_t count, void* context) {
  auto& upload = *static_cast<Upload*>(context);
  const Result<std::size_t> size = upload.file->read_at({room, one * count}, upload.at);
  if (!size) return CURL_READFUNC_ABORT;
  upload.at += *size;
  return (*upload.on_upload)(upload.at) ? *size : CURL_READFUNC_ABORT;
}

int rewind_body(void* context, curl_off_t offset, int origin) {
  if (origin != SEEK_SET) return CURL_SEEKFUNC_CANTSEEK;
  static_cast<Upload*>(context)->at = static_cast<std::uint64_t>(offset);
  return CURL_SEEKFUNC_OK;
}

int ask_whether_to_go_on(void* context, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return (*static_cast<const std::function<bool()>*>(context))() ? 0 : 1;
}

}  // namespace

std::string HttpAnswer::header(std::string_view name) const {
  const auto found = std::ranges::find(headers, name, &std::pair<std::string, std::string>::first);
  return found != headers.end() ? found->second : std::string();
}

CurlHandle make_handle(const HttpOptions& options, const std::string& url, const curl_slist* headers, bool insecure) {
  initialise();
  CurlHandle handle(curl_easy_init());
  if (handle == nullptr) throw std::bad_alloc();
  CURL* curl = handle.get();
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L);  // its end waits for no resolver
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, url.starts_with("https:") && !insecure ? "https" : "http,https");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, kMostRedirections);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, static_cast<long>(options.connect_timeout.count()));
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, options.stall_timeout.count() > 0 ? kLeastBytesPerSecond : 0L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(options.stall_timeout.count()));
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "braid");
  if (options.direct) curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
  if (!options.ca_file.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, options.ca_file.c_str());
  if (insecure) {
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
  }
  return handle;
}

CurlList make_list(const std::vector<std::string>& lines) {
  CurlList list;
  for (const std::string& line : lines) {
    curl_slist* longer = curl_slist_append(list.get(), line.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    list.release();
    list.reset(longer);
  }
  return list;
}

Error transfer_error(CURLcode code, const std::string& url) {
  std::string sentence = fmt::format("{}: {}", origin_of(url), curl_easy_strerror(code));
  if (code == CURLE_PEER_FAILED_VERIFICATION)
    sentence += "; if the server is one of yours, name who vouches for it with --ca-file, or allow it with --insecure";
  return {ErrorCode::kIo, sentence, ""};
}

Result<HttpAnswer> ask(const HttpOptions& options, const HttpRequest& request, std::size_t most) {
  const CurlList headers = make_list(request.headers);
  const CurlHandle handle = make_handle(options, request.url, headers.get(), request.insecure);
  CURL* curl = handle.get();
  Taking taking{{}, most, &request.on_body, curl};
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &taking);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &taking);
  std::optional<OpenFile> file;
  Upload upload{nullptr, 0, &request.on_upload};
  CurlList other_host;
  if (!request.connect_to.empty()) {
    other_host = make_list({"::" + request.connect_to});
    curl_easy_setopt(curl, CURLOPT_CONNECT_TO, other_host.get());
  }
  if (request.goes_on) {
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, ask_whether_to_go_on);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &request.goes_on);
  }
  if (request.method == "HEAD") curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
  if (!request.upload_file.empty()) {
    Result<OpenFile> opened = OpenFile::read(request.upload_file);
    if (!opened) return opened.error();
    file.emplace(std::move(*opened));
    const Result<std::uint64_t> size = file->size();
    if (!size) return size.error();
    upload.file = &*file;
    curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(curl, CURLOPT_READFUNCTION, give_body);
    curl_easy_setopt(curl, CURLOPT_READDATA, &upload);
    curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, rewind_body);
    curl_easy_setopt(curl, CURLOPT_SEEKDATA, &upload);
    curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(*size));
  } else if (request.method != "GET" && request.method != "HEAD") {
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request.body.c_str());
  }
  if (request.method != "GET" && request.method != "HEAD") curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  const CURLcode code = curl_easy_perform(curl);
  if (taking.too_large)
    return Error{ErrorCode::kBadFile, fmt::format("{}: the answer is larger than {} bytes", origin_of(request.url), most), ""};
  if (code == CURLE_ABORTED_BY_CALLBACK || taking.is_unwanted) return stopped();
  if (code != CURLE_OK) return transfer_error(code, request.url);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  const char* url = nullptr;
  curl_easy_getinfo(curl, CURLINFO_EFFECTIVE_URL, &url);
  taking.answer.status = static_cast<int>(status);
  taking.answer.url = url != nullptr ? url : request.url;
  return std::move(taking.answer);
}

std::string origin_of(std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return std::string(url.substr(0, 200));
  const std::size_t end = url.find_first_of("/?#", scheme + 3);
  std::string_view host = url.substr(scheme + 3, end == std::string_view::npos ? end : end - scheme - 3);
  if (const std::size_t user = host.rfind('@'); user != std::string_view::npos) host.remove_prefix(user + 1);
  std::string origin = fmt::format("{}://{}", url.substr(0, scheme), host);
  for (char& c : origin) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return origin;
}

std::string percent_encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '-' || c == '.' || c == '_' || c == '~')
      out += c;
    else
      out += fmt::format("%{:02X}", byte);
  }
  return out;
}

}  // namespace braid::registry
