#include "model/kv_growth.h"

#include <algorithm>
#include <sys/resource.h>
#include <unistd.h>

namespace braid::model {
namespace {

constexpr std::size_t kPiece = std::size_t{2} << 20;   // a large page: a fraction of a millisecond
constexpr std::size_t kFirst = std::size_t{64} << 20;  // before anything is computed
constexpr int kNice = 10;  // a tenth of a processor where the compute threads want them all, which is still faster than they fill blocks

}  // namespace

// All blocks end within the last page.
KvGrowth::KvGrowth(const KvArena& arena, std::int32_t blocks)
    : arena_(arena),
      wanted_(blocks == arena.blocks() ? arena.bytes() : std::min(arena.bytes(), static_cast<std::size_t>(blocks) * arena.block_bytes())) {
  while (present() < std::min(kFirst, wanted_)) touch_piece();
  if (is_over()) return;
  thread_ = std::jthread([this](const std::stop_token& stop) {
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);
    while (!stop.stop_requested() && !is_over()) {
      is_awaited_.wait(true);  // or it would take the mutex again before the step does
      const std::lock_guard lock(mutex_);
      touch_piece();
    }
  });
}

KvGrowth::~KvGrowth() = default;

void KvGrowth::stop() {
  if (is_stopped_.exchange(true)) return;
  thread_ = std::jthread();  // it ends within a piece
}

void KvGrowth::reach(std::int32_t blocks) {
  const std::size_t end = std::min(wanted_, static_cast<std::size_t>(blocks) * arena_.block_bytes());
  if (is_over() || present() >= end) return;
  is_awaited_ = true;
  {
    const std::lock_guard lock(mutex_);
    while (present() < end) touch_piece();
  }
  is_awaited_ = false;
  is_awaited_.notify_one();
}

void KvGrowth::touch_piece() {
  const std::size_t begin = present();
  const std::size_t end = std::min(begin + kPiece, wanted_);
  if (begin < end) arena_.touch(begin, end);
  present_.store(end, std::memory_order_release);
}

}  // namespace braid::model
