#include "net/http/send_batch.h"

#include <boost/asio/post.hpp>
#include <utility>

namespace braid::net::http {
namespace {

constexpr std::size_t kMostBytes = std::size_t{64} << 10;  // of several pieces
constexpr int kNoSocket = -1;                              // takes nothing

}  // namespace

SendBatch::SendBatch(boost::asio::io_context& loop, std::unique_ptr<SendRing> ring) : loop_(loop), ring_(std::move(ring)) {
  pieces_.reserve(SendRing::kDepth);
  sends_.reserve(SendRing::kDepth);
}

void SendBatch::add(Sender& sender, int socket, std::string_view bytes) {
  if (pieces_.size() == SendRing::kDepth || bytes_.size() + bytes.size() > kMostBytes) send();
  if (!is_posted_) post();
  const std::size_t begin = bytes_.size();
  bytes_ += bytes;
  pieces_.push_back({&sender, socket, begin, bytes.size()});
}

void SendBatch::post() {
  boost::asio::post(loop_, [self = shared_from_this()] {
    self->is_posted_ = false;
    self->send();
  });
  is_posted_ = true;
}

// Its place stays, so that it may be called from on_sent() as well.
void SendBatch::forget(const Sender& sender) {
  for (Piece& piece : pieces_) {
    if (piece.sender == &sender) piece = {nullptr, kNoSocket, piece.begin, piece.size};
  }
}

void SendBatch::send() noexcept {
  for (const Piece& piece : pieces_) sends_.push_back({piece.socket, bytes_.data() + piece.begin, piece.size, 0});
  ring_ != nullptr&& sends_.size() > 1 ? ring_->send(sends_) : send_each(sends_);
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (pieces_[i].sender == nullptr) continue;
    const Outgoing& sent = sends_[i];
    const std::size_t taken = sent.result > 0 ? static_cast<std::size_t>(sent.result) : 0;
    pieces_[i].sender->on_sent(taken, {sent.bytes + taken, sent.size - taken}, sent.result < 0 ? -sent.result : 0);
  }
  pieces_.clear();
  sends_.clear();
  bytes_.clear();
  if (bytes_.capacity() > 2 * kMostBytes) bytes_.shrink_to_fit();
}

}  // namespace braid::net::http
