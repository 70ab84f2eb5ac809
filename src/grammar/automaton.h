// A pushdown automaton over bytes. Each rule of a grammar is a deterministic automaton whose edges read a byte or call another
// rule; what is not deterministic is only which calls and returns are taken, and `Threads` follows all of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace braid::grammar {

using StateId = std::uint32_t;
inline constexpr StateId kNoState = ~std::uint32_t{0};

struct ByteEdge {
  std::uint8_t first = 0;
  std::uint8_t last = 0;  // inclusive
  StateId target = 0;
};

// Enter `callee`; when it returns, go on at `next`. A tail call returns to the caller's caller instead.
struct CallEdge {
  StateId callee = 0;
  StateId next = 0;
  bool tail = false;
};

// A counted repetition: its one state counts how often the body has returned to it.
struct Loop {
  StateId body = 0;
  std::uint32_t min = 0;
  std::uint32_t max = 0;  // kUnbounded: the count stops at `min`
  StateId twin = 0;       // the first loop state with this body
};

struct State {
  std::uint32_t bytes_begin = 0;
  std::uint32_t bytes_end = 0;
  std::uint32_t calls_begin = 0;
  std::uint32_t calls_end = 0;
  std::uint32_t loop = kNoState;  // index into loops
  std::uint32_t rule = 0;
  std::uint32_t depth = 0;  // of calls that the flattest way to the rule's end takes
  bool final = false;       // the rule may return here
  bool plain = false;       // neither final nor calls nor loop
  bool forwards = false;    // nothing but a single call: what its callee says, it says
};

// Immutable. From every state the end of the text can be reached.
struct Automaton {
  std::vector<State> states;
  std::vector<ByteEdge> byte_edges;  // by state, then by first byte; disjoint
  std::vector<CallEdge> call_edges;
  std::vector<Loop> loops;
  StateId start = 0;
  std::uint32_t rules = 0;

  std::span<const ByteEdge> bytes(const State& state) const {
    return {byte_edges.data() + state.bytes_begin, state.bytes_end - state.bytes_begin};
  }
  std::span<const CallEdge> calls(const State& state) const {
    return {call_edges.data() + state.calls_begin, state.calls_end - state.calls_begin};
  }
  StateId next(const State& state, std::uint8_t byte) const {
    for (const ByteEdge& edge : bytes(state))
      if (byte <= edge.last) return byte >= edge.first ? edge.target : kNoState;
    return kNoState;
  }
};

}  // namespace braid::grammar
