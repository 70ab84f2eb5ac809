#include "grammar/token_walk.h"

namespace braid::grammar {

std::bitset<256> first_bytes(const Automaton& automaton, const Threads& threads) {
  std::bitset<256> bytes;
  for (const Thread& thread : threads.top())
    for (const ByteEdge& edge : automaton.bytes(automaton.states[thread.state]))
      for (unsigned byte = edge.first; byte <= edge.last; ++byte) bytes.set(byte);
  return bytes;
}

}  // namespace braid::grammar
