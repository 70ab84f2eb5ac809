// The consumer's handle of a sequence: what Engine::submit hands out.
#pragma once

#include "braid/engine.h"
#include "sched/sequence.h"
#include "sched/token_stream.h"

#include <cstdint>
#include <optional>

namespace braid::sched {

// Told about what consumers do.
class TicketListener {
 public:
  virtual void on_abandoned(Sequence& sequence, bool is_complete) noexcept = 0;  // the consumer wants no more; it may have all it wanted
  virtual void on_drained(Sequence& sequence) noexcept = 0;                      // a stalled sequence's consumer has caught up

 protected:
  ~TicketListener() = default;
};

// Owns the stream, so that what was delivered stays readable after the sequence has ended. Ticket and sequence know each other until
// either ends. Loop only.
class SequenceTicket final : public TokenSource {
 public:
  SequenceTicket(TicketListener& listener, std::int32_t stream_capacity) : listener_(listener), stream_(stream_capacity) {}
  ~SequenceTicket() override {
    if (sequence_ != nullptr) listener_.on_abandoned(*sequence_, false);
  }

  std::optional<TokenEvent> try_next() override {
    auto event = stream_.try_next();
    report_drained();
    return event;
  }

  Signal& arrived() override { return stream_.arrived(); }

  void cancel() override { leave(false); }
  void complete() override { leave(true); }

  std::int32_t cached_tokens() const override { return sequence_ != nullptr ? sequence_->cached_tokens.value_or(0) : cached_tokens_; }
  Drafts drafts() const override { return sequence_ != nullptr ? Drafts{sequence_->drafts.accepted, sequence_->drafts.rejected} : drafts_; }
  double queue_ms() const override { return sequence_ != nullptr ? sequence_->queue_seconds.value_or(0.0) * 1e3 : queue_ms_; }
  bool started() const override { return sequence_ == nullptr || sequence_->cached_tokens.has_value(); }

  TokenStream& stream() { return stream_; }

  void attach(Sequence& sequence) {
    sequence_ = &sequence;
    sequence.ticket = this;
  }
  // The sequence has ended; the stream holds its Finish.
  void detach() {
    cached_tokens_ = cached_tokens();
    queue_ms_ = queue_ms();
    drafts_ = drafts();
    sequence_ = nullptr;
  }

 private:
  void leave(bool is_complete) {
    if (Sequence* sequence = sequence_) {
      detach();
      listener_.on_abandoned(*sequence, is_complete);
    }
    stream_.close();
  }

  // Half a stream of room, so that a slow consumer costs few changes of the batch.
  void report_drained() {
    if (sequence_ != nullptr && sequence_->is_stalled() && stream_.size() <= stream_.capacity() / 2) listener_.on_drained(*sequence_);
  }

  TicketListener& listener_;
  Sequence* sequence_ = nullptr;
  std::int32_t cached_tokens_ = 0;  // once detached, as the next two
  Drafts drafts_;
  double queue_ms_ = 0.0;
  TokenStream stream_;
};

// Tokens that the stream can still take when all posted steps have delivered theirs. The sequence has its ticket.
inline std::int32_t stream_room(const Sequence& sequence) {
  const TokenStream& stream = sequence.ticket->stream();
  return stream.capacity() - stream.size() - sequence.progress.most_pending();
}

}  // namespace braid::sched
