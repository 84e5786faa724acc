// The usual accesses of a whole wave to memory and LDS: all lanes are on, and their addresses are one base and
// 32 bits of each lane inside of one range. Checks, counters and copies work on chunks of lanes. What is not of that kind
// is left to memory_access.h, which tells faults lane by lane.
#pragma once

#include <numeric>

#include "opcodes/memory_access.h"

namespace rpl_emu::inline RPL_EMU_BUILD {

#ifdef __AVX512F__
inline constexpr unsigned kChunk = 16;
#else
inline constexpr unsigned kChunk = 8;
#endif
inline constexpr unsigned kChunks = kLanes / kChunk;

// How the places of neighbouring lanes lie: one behind the other, all the same, or otherwise.
enum class Shape : uint8_t { piece, same, other };

struct Near {
  uint64_t base = 0;                 // the kernel's address of offset 0
  uint64_t place = 0;                // that of this process
  const uint32_t* offset = nullptr;  // by lane
  Shape shape[kChunks] = {};
};

#ifdef __AVX512F__
inline __m512i chunk_at(const uint32_t* from) { return _mm512_loadu_si512(from); }
inline __m512i lane_numbers() { return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); }
#elif defined(__AVX2__)
inline __m256i chunk_at(const uint32_t* from) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); }
inline __m256i lane_numbers() { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }
inline unsigned bits_of_chunk(__m256i x) { return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(x))); }
#endif

template <unsigned Bytes>
inline Shape shape_of(const uint32_t* offset) {
  const uint32_t first = offset[0];
  if (first > ~uint32_t{0} - Bytes * kChunk) return Shape::other;  // 32 bits may overflow
#ifdef __AVX512F__
  const __m512i apart = _mm512_sub_epi32(chunk_at(offset), _mm512_set1_epi32(static_cast<int>(first)));
  if (_mm512_cmpneq_epi32_mask(apart, _mm512_mullo_epi32(lane_numbers(), _mm512_set1_epi32(Bytes))) == 0) return Shape::piece;
  return _mm512_test_epi32_mask(apart, apart) == 0 ? Shape::same : Shape::other;
#elif defined(__AVX2__)
  const __m256i apart = _mm256_sub_epi32(chunk_at(offset), _mm256_set1_epi32(static_cast<int>(first)));
  const __m256i other = _mm256_xor_si256(apart, _mm256_mullo_epi32(lane_numbers(), _mm256_set1_epi32(Bytes)));
  if (_mm256_testz_si256(other, other)) return Shape::piece;
  return _mm256_testz_si256(apart, apart) ? Shape::same : Shape::other;
#else
  uint32_t apart = 0, other = 0;
  for (unsigned j = 0; j < kChunk; ++j) {
    apart |= offset[j] - first;
    other |= (offset[j] - first) ^ Bytes * j;
  }
  return other == 0 ? Shape::piece : apart == 0 ? Shape::same : Shape::other;
#endif
}

inline bool all_within(const uint32_t* offset, uint32_t low, uint32_t room) {
  uint32_t beyond = 0;
#ifdef __AVX512F__
  for (unsigned j = 0; j < kLanes; j += kChunk)
    beyond |= _mm512_cmpgt_epu32_mask(_mm512_sub_epi32(chunk_at(offset + j), _mm512_set1_epi32(static_cast<int>(low))), _mm512_set1_epi32(static_cast<int>(room)));
#else
  for (unsigned j = 0; j < kLanes; ++j) beyond |= offset[j] - low > room ? 1U : 0U;
#endif
  return beyond == 0;
}
inline bool all_equal(const uint32_t* row) {
  uint32_t other = 0;
  for (unsigned j = 0; j < kLanes; ++j) other |= row[j] ^ row[0];
  return other == 0;
}

template <unsigned Bytes>
inline void find_shapes(Near& near) {
  for (unsigned c = 0; c < kChunks; ++c) near.shape[c] = shape_of<Bytes>(near.offset + c * kChunk);
}

// Lines where these begin at other ones than their neighbours; none if some fall, or if a line's end may cut one.
struct LineChanges { unsigned of64 = 1, of128 = 1; bool known = true; };
template <unsigned Bytes>
inline LineChanges line_changes(uint64_t base, const uint32_t* offset) {
  LineChanges out;
  const auto begin = static_cast<uint32_t>(base & 127);
  uint32_t odd = 0, falls = 0;
#ifdef __AVX512F__
  __m512i before = _mm512_set1_epi32(static_cast<int>(offset[0] + begin));
  for (unsigned j = 0; j < kLanes; j += kChunk) {
    const __m512i now = _mm512_add_epi32(chunk_at(offset + j), _mm512_set1_epi32(static_cast<int>(begin)));
    const __m512i left = _mm512_maskz_alignr_epi32(0xffff, now, before, 15);
    before = now;
    odd |= _mm512_test_epi32_mask(now, _mm512_set1_epi32(Bytes - 1));
    falls |= _mm512_cmplt_epu32_mask(now, left);
    const __m512i other = _mm512_xor_si512(now, left);
    out.of64 += static_cast<unsigned>(std::popcount(static_cast<uint32_t>(_mm512_test_epi32_mask(other, _mm512_set1_epi32(~63)))));
    out.of128 += static_cast<unsigned>(std::popcount(static_cast<uint32_t>(_mm512_test_epi32_mask(other, _mm512_set1_epi32(~127)))));
  }
#elif defined(__AVX2__)
  __m256i before = _mm256_set1_epi32(static_cast<int>(offset[0] + begin));
  const __m256i zero = _mm256_setzero_si256();
  unsigned same64 = 0, same128 = 0;
  __m256i bits = zero, fall = zero;
  for (unsigned j = 0; j < kLanes; j += kChunk) {
    const __m256i now = _mm256_add_epi32(chunk_at(offset + j), _mm256_set1_epi32(static_cast<int>(begin)));
    const __m256i left = _mm256_alignr_epi8(now, _mm256_permute2x128_si256(before, now, 0x21), 12);
    before = now;
    bits = _mm256_or_si256(bits, now);
    fall = _mm256_or_si256(fall, _mm256_xor_si256(_mm256_max_epu32(now, left), now));
    const __m256i other = _mm256_xor_si256(now, left);
    same64 += static_cast<unsigned>(std::popcount(bits_of_chunk(_mm256_cmpeq_epi32(_mm256_srli_epi32(other, 6), zero))));
    same128 += static_cast<unsigned>(std::popcount(bits_of_chunk(_mm256_cmpeq_epi32(_mm256_srli_epi32(other, 7), zero))));
  }
  odd = _mm256_testz_si256(bits, _mm256_set1_epi32(Bytes - 1)) ? 0 : 1;
  falls = _mm256_testz_si256(fall, fall) ? 0 : 1;
  out.of64 += kLanes - same64;
  out.of128 += kLanes - same128;
#else
  for (unsigned j = 1; j < kLanes; ++j) {
    const uint32_t now = offset[j] + begin, left = offset[j - 1] + begin;
    odd |= now & (Bytes - 1);
    falls |= static_cast<uint32_t>(now < left);
    out.of64 += static_cast<unsigned>(now >> 6 != left >> 6);
    out.of128 += static_cast<unsigned>(now >> 7 != left >> 7);
  }
  odd |= (offset[0] + begin) & (Bytes - 1);
#endif
  out.known = (Bytes & (Bytes - 1)) == 0 && odd == 0 && falls == 0;
  return out;
}

// Lines that rising chunks touch, each a piece; false where they do not rise.
template <unsigned Bytes>
inline bool count_pieces(MemoryCount& count, const Near& near) {
  uint64_t last64 = 0, last128 = 0, lines64 = 0, lines128 = 0;
  for (unsigned c = 0; c < kChunks; ++c) {
    if (near.shape[c] == Shape::other) return false;
    const uint64_t begin = near.base + near.offset[c * kChunk];
    const uint64_t end = begin + Bytes * (near.shape[c] == Shape::piece ? kChunk : 1) - 1;
    if (c != 0 && begin >> 6 < last64) return false;
    lines64 += (end >> 6) - (begin >> 6) + (c != 0 && begin >> 6 == last64 ? 0 : 1);
    lines128 += (end >> 7) - (begin >> 7) + (c != 0 && begin >> 7 == last128 ? 0 : 1);
    last64 = end >> 6;
    last128 = end >> 7;
  }
  count.bytes += uint64_t{Bytes} * kLanes;
  count.lines64 += lines64;
  count.lines128 += lines128;
  return true;
}
template <unsigned Bytes>
inline void count_near(MemoryCount& count, const Near& near) {
  if (count_pieces<Bytes>(count, near)) return;
  const LineChanges changes = line_changes<Bytes>(near.base, near.offset);
  if (changes.known) {
    count.bytes += uint64_t{Bytes} * kLanes;
    count.lines64 += changes.of64;
    count.lines128 += changes.of128;
    return;
  }
  Addresses at;
  for (unsigned j = 0; j < kLanes; ++j) at.of[j] = near.base + near.offset[j];
  count_lines_of(count, at.of, kLanes, Bytes);
}

// From memory to registers. Registers may be those of the offsets: a chunk's are read before it is written.
template <unsigned Words>
inline void load_chunk(uint32_t (*to)[kLanes], const Near& near, unsigned c) {
  const uint32_t* offset = near.offset + c * kChunk;
  const auto* from = reinterpret_cast<const uint8_t*>(near.place + offset[0]);
  uint32_t words[Words * kChunk];
  if (near.shape[c] == Shape::piece) {
    std::memcpy(words, from, sizeof words);
    for (unsigned k = 0; k < Words; ++k)
      for (unsigned j = 0; j < kChunk; ++j) to[k][c * kChunk + j] = words[Words * j + k];
  } else if (near.shape[c] == Shape::same) {
    std::memcpy(words, from, 4 * Words);
    for (unsigned k = 0; k < Words; ++k)
      for (unsigned j = 0; j < kChunk; ++j) to[k][c * kChunk + j] = words[k];
  } else {
#ifdef __AVX512F__
    // Gathers take the index as a signed number.
    const __m512i index = _mm512_xor_si512(chunk_at(offset), _mm512_set1_epi32(INT32_MIN));
    const auto* middle = reinterpret_cast<const uint8_t*>(near.place + 0x80000000);
    for (unsigned k = 0; k < Words; ++k) _mm512_storeu_si512(to[k] + c * kChunk, _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), 0xffff, index, middle + 4 * k, 1));
#else
    for (unsigned j = 0; j < kChunk; ++j) std::memcpy(words + Words * j, reinterpret_cast<const void*>(near.place + offset[j]), 4 * Words);
    for (unsigned k = 0; k < Words; ++k)
      for (unsigned j = 0; j < kChunk; ++j) to[k][c * kChunk + j] = words[Words * j + k];
#endif
  }
}
template <unsigned Words>
inline void load_near(Wave& w, unsigned row, const Near& near) {
  for (unsigned c = 0; c < kChunks; ++c) load_chunk<Words>(&w.v[row], near, c);
}

// Of lanes with the same place the highest wins.
template <unsigned Words>
inline void store_near(Wave& w, unsigned row, const Near& near) {
  const uint32_t(*from)[kLanes] = &w.v[row];
  for (unsigned c = 0; c < kChunks; ++c) {
    const unsigned first = c * kChunk;
    uint32_t words[Words * kChunk];
    if (near.shape[c] == Shape::piece) {
      for (unsigned j = 0; j < kChunk; ++j)
        for (unsigned k = 0; k < Words; ++k) words[Words * j + k] = from[k][first + j];
      std::memcpy(reinterpret_cast<void*>(near.place + near.offset[first]), words, sizeof words);
      continue;
    }
    for (unsigned j = near.shape[c] == Shape::same ? kChunk - 1 : 0; j < kChunk; ++j)
      for (unsigned k = 0; k < Words; ++k) write_at<uint32_t>(near.place + near.offset[first + j] + uint64_t{4} * k, from[k][first + j]);
  }
}

}  // namespace rpl_emu::inline RPL_EMU_BUILD
