#include "ranks/rank_loop.h"

#include "files/byte_source.h"
#include "files/gguf.h"
#include "files/hf_folder.h"
#include "model/families/families.h"
#include "model/families/older_files.h"
#include "model/loaded_tensors.h"
#include "ranks/rank_model.h"

#include <chrono>
#include <exception>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <thread>
#include <utility>

namespace braid::ranks {
namespace {

using Clock = std::chrono::steady_clock;

// Of the first rank, which is shown; of the others, which say by it that they live.
constexpr std::chrono::milliseconds kProgressInterval{200};
constexpr std::chrono::milliseconds kLifeInterval{1000};

struct OpenedModel {
  files::GgufFile file;
  model::LoadedTensors tensors;
};

Result<OpenedModel> open_weights(const std::string& path) {
  if (!files::is_folder(path)) {
    Result<files::GgufFile> file = files::GgufFile::open(path);
    if (file) file = model::in_todays_form(std::move(*file));
    if (!file) return file.error();
    model::LoadedTensors tensors = model::LoadedTensors::of(*file);
    return OpenedModel{std::move(*file), std::move(tensors)};
  }
  const Result<files::HfFolder> folder = files::HfFolder::open(path);
  if (!folder) return folder.error();
  Result<files::GgufContents> contents = model::read_folder(*folder);
  if (!contents) return contents.error();
  Result<model::LoadedTensors> tensors = model::LoadedTensors::of(*folder);
  if (!tensors) return tensors.error();
  return OpenedModel{files::GgufFile::from_contents(std::move(*contents)), std::move(*tensors)};
}

// What the server hands out while passes run: on a thread of its own, until this is destroyed. It may be as large as the weights, so nothing
// of it stays in the channel.
class SecondLine {
 public:
  SecondLine(Channel& server, RankModel& model) : server_(server), model_(model), thread_([this] { run(); }) {}
  ~SecondLine() {
    server_.hang_up();
    thread_.join();
  }
  SecondLine(const SecondLine&) = delete;
  SecondLine& operator=(const SecondLine&) = delete;

 private:
  void run() {
    while (const auto message = server_.receive({}, kMostHandedOut)) {
      Result<Bytes> taken = Error{ErrorCode::kInternal, "", {}};
      try {
        taken = take((*message)->kind, server_.take_bytes());
      } catch (const std::exception& error) {
        taken = Error{ErrorCode::kInternal, error.what(), {}};
      }
      const std::string sentence = taken ? "" : taken.error().message;
      const std::span<const std::byte> bytes = taken ? std::span<const std::byte>(*taken) : std::as_bytes(std::span(sentence));
      if (!server_.send(taken ? Kind::kTaken : Kind::kRefused, bytes)) return;
    }
  }

  // What there is to answer.
  Result<Bytes> take(Kind kind, const Bytes& bytes) {
    if (kind == Kind::kAdapter) return nothing_of(model_.take_adapter(bytes));
    if (kind == Kind::kLengths) return measure(bytes);
    NewerWeights what;
    if (kind != Kind::kWeights || !read(bytes, what)) return not_understood();
    const auto tensors = server_.receive({}, kMostHandedOut);
    if (!tensors) return tensors.error();
    return nothing_of(model_.take_weights(what, files::owned_bytes(server_.take_bytes(), "the newer weights")));
  }

  Result<Bytes> measure(const Bytes& bytes) {
    std::uint64_t weights = 0;
    if (!read(bytes, weights)) return not_understood();
    const auto adapter = server_.receive({}, kMostHandedOut);
    if (!adapter) return adapter.error();
    const Result<Magnitudes> measured = model_.measure(weights, server_.take_bytes());
    if (!measured) return measured.error();
    Bytes answer;
    write(*measured, answer);
    return answer;
  }

  static Error not_understood() { return {ErrorCode::kInternal, "what was handed out is not understood", {}}; }
  static Result<Bytes> nothing_of(const Result<void>& taken) { return taken ? Result<Bytes>(Bytes()) : taken.error(); }

  Channel& server_;
  RankModel& model_;
  std::thread thread_;
};

// One rank's conversation with the server. One rank of the last stage tells results; the others of it compute the same and keep them.
class Conversation {
 public:
  Conversation(const Lines& lines, const Seat& seat) : server_(lines.passes), second_(lines.second), seat_(seat) {}

  Result<void> answer(const Channel::Message& message) {
    if (message.kind == Kind::kSetup) return set_up(message.bytes);
    if (model_ == nullptr) return broken();
    switch (message.kind) {
      case Kind::kAllocate:
        return allocate(message.bytes);
      case Kind::kMoves:
        if (!read(message.bytes, moves_)) return broken();
        model_->move(moves_);
        return {};
      case Kind::kSave:
        if (!read(message.bytes, contents_)) return broken();
        model_->save(contents_.places, out_);
        return server_.send(Kind::kValues, out_);
      case Kind::kLoad:
        if (!read(message.bytes, contents_)) return broken();
        model_->restore(contents_);
        return {};
      case Kind::kPass:
        if (!read(message.bytes, pass_, uses_)) return broken();
        model_->run(pass_, uses_);
        write(model_->take_times(), out_);
        return server_.send(Kind::kDone, out_);
      case Kind::kLogits:
        return tell_logits(message.bytes);
      case Kind::kHidden:
        return tell_hidden(message.bytes);
      default:
        return broken();
    }
  }

 private:
  static Error broken() { return {ErrorCode::kInternal, "the server sent what a rank does not understand", {}}; }

  Result<void> set_up(std::span<const std::byte> bytes) {
    Setup setup;
    if (!read(bytes, setup)) return broken();
    auto opened = open_weights(setup.model);
    if (!opened) return opened.error();
    auto loaded = RankModel::load(opened->file, std::move(opened->tensors), setup, seat_, progress());
    if (!loaded) return loaded.error();
    model_ = std::move(*loaded);
    taker_.emplace(second_, *model_);
    return tell_ready();
  }

  Result<void> allocate(std::span<const std::byte> bytes) {
    std::int32_t blocks = 0;
    if (!read(bytes, blocks)) return broken();
    if (const Result<void> allocated = model_->allocate(blocks, progress()); !allocated) return allocated;
    return tell_ready();
  }

  // Of a load, which ends when there is no server any more for which it would be.
  files::Progress progress() {
    return [this, next = Clock::time_point()](std::string_view what, std::uint64_t done, std::uint64_t total) mutable {
      if (server_.is_hung_up()) throw std::runtime_error("the server is gone");
      const Clock::time_point now = Clock::now();
      if (now < next) return;
      next = now + (seat_.rank == 0 ? kProgressInterval : kLifeInterval);
      write(LoadStage{std::string(what), done, total}, out_);
      (void)server_.send(Kind::kProgress, out_);  // a server that is gone is noticed above
    };
  }

  Result<void> tell_ready() {
    write(model_->ready(), out_);
    return server_.send(Kind::kReady, out_);
  }

  Result<void> tell_logits(std::span<const std::byte> bytes) {
    Wanted wanted;
    if (!read(bytes, wanted)) return broken();
    if (!seat_.stage().is_last()) return {};
    const model::Rows rows = model_->logits(wanted);
    if (!seat_.speaks()) return {};
    const auto row_bytes = static_cast<std::size_t>(model_->vocab()) * sizeof(float);
    out_.clear();
    for (std::int64_t row = 0; row < wanted.count; ++row) {
      const auto* values = reinterpret_cast<const std::byte*>(rows[row]);
      out_.insert(out_.end(), values, values + row_bytes);
    }
    return server_.send(Kind::kValues, out_);
  }

  Result<void> tell_hidden(std::span<const std::byte> bytes) {
    Wanted wanted;
    if (!read(bytes, wanted)) return broken();
    if (!seat_.speaks()) return {};
    hidden_.resize(static_cast<std::size_t>(model_->embedding()));
    model_->hidden(wanted.begin, hidden_);
    return server_.send(Kind::kValues, std::as_bytes(std::span(hidden_)));
  }

  Channel& server_;
  Channel& second_;
  const Seat seat_;
  std::unique_ptr<RankModel> model_;
  std::optional<SecondLine> taker_;  // ends before the model
  Moves moves_;
  BlockContents contents_;
  step::Pass pass_;
  Uses uses_;
  Bytes out_;
  std::vector<float> hidden_;
};

}  // namespace

Result<void> serve_passes(const Lines& lines, const std::string& key, const Seat& seat) {
  Channel& server = lines.passes;
  Bytes bytes;
  for (Channel* line : {&lines.passes, &lines.second}) {
    write(Greeting{key, BRAID_VERSION, seat.rank, seat.ranks, line == &lines.second ? 1 : 0}, bytes);
    if (const Result<void> sent = line->send(Kind::kGreeting, bytes); !sent) return sent;
  }
  Conversation conversation(lines, seat);
  for (;;) {
    const auto message = server.receive();
    if (!message) return server.has_ended() ? Result<void>{} : message.error();
    Result<void> answered = Error{ErrorCode::kInternal, "", {}};
    try {
      answered = conversation.answer(**message);
    } catch (const std::exception& error) {
      answered = Error{ErrorCode::kInternal, error.what(), {}};
    }
    if (answered) continue;
    const std::string sentence = fmt::format("rank {}: {}", seat.rank, answered.error().message);
    (void)server.send(Kind::kFailure, std::as_bytes(std::span(sentence)));  // it may be gone
    return answered;
  }
}

}  // namespace braid::ranks
