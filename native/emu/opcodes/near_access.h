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

// Distinct lines of rising places. A line is new that lies above all those of the lane before; two lines at most are a
// lane's. Numbers of lines begin with 1, so that the first lane has one before it.
struct Lines { unsigned of64 = 0, of128 = 0; bool rising = true; };
#ifdef __AVX512F__
inline unsigned new_lines(__m512i now, __m512i ends, unsigned shift, __m512i& before) {
  const __m512i one = _mm512_set1_epi32(1);
  const __m512i first = _mm512_add_epi32(_mm512_maskz_srli_epi32(0xffff, now, shift), one), last = _mm512_add_epi32(_mm512_maskz_srli_epi32(0xffff, ends, shift), one);
  const __m512i left = _mm512_maskz_alignr_epi32(0xffff, last, before, 15);
  before = last;
  const uint32_t firsts = _mm512_cmpgt_epu32_mask(first, left), lasts = _mm512_cmpgt_epu32_mask(last, _mm512_maskz_max_epu32(0xffff, first, left));
  return static_cast<unsigned>(std::popcount(firsts | lasts << 16));
}
#elif defined(__AVX2__)
inline unsigned new_lines(__m256i now, __m256i ends, int shift, __m256i& before) {
  const __m256i one = _mm256_set1_epi32(1);
  const __m256i first = _mm256_add_epi32(_mm256_srli_epi32(now, shift), one), last = _mm256_add_epi32(_mm256_srli_epi32(ends, shift), one);
  const __m256i left = _mm256_alignr_epi8(last, _mm256_permute2x128_si256(before, last, 0x21), 12);
  before = last;
  const unsigned firsts = bits_of_chunk(_mm256_cmpgt_epi32(first, left)), lasts = bits_of_chunk(_mm256_cmpgt_epi32(last, _mm256_max_epu32(first, left)));
  return static_cast<unsigned>(std::popcount(firsts | lasts << 8));
}
#endif
template <unsigned Bytes>
inline Lines lines_of(uint64_t base, const uint32_t* offset) {
  Lines out;
  const auto begin = static_cast<uint32_t>(base & 127);
  const uint32_t start = offset[0] + begin;
#ifdef __AVX512F__
  const __m512i add = _mm512_set1_epi32(static_cast<int>(begin));
  __m512i before = _mm512_set1_epi32(static_cast<int>(start)), before64 = _mm512_maskz_srli_epi32(0xffff, before, 6), before128 = _mm512_maskz_srli_epi32(0xffff, before, 7);
  uint32_t falls = 0;
  for (unsigned j = 0; j < kLanes; j += kChunk) {
    const __m512i now = _mm512_add_epi32(chunk_at(offset + j), add), ends = _mm512_add_epi32(now, _mm512_set1_epi32(Bytes - 1));
    falls |= _mm512_cmplt_epu32_mask(now, _mm512_maskz_alignr_epi32(0xffff, now, before, 15));
    before = now;
    out.of64 += new_lines(now, ends, 6, before64);
    out.of128 += new_lines(now, ends, 7, before128);
  }
  out.rising = falls == 0;
#elif defined(__AVX2__)
  const __m256i add = _mm256_set1_epi32(static_cast<int>(begin));
  __m256i before = _mm256_set1_epi32(static_cast<int>(start)), before64 = _mm256_srli_epi32(before, 6), before128 = _mm256_srli_epi32(before, 7);
  __m256i falls = _mm256_setzero_si256();
  for (unsigned j = 0; j < kLanes; j += kChunk) {
    const __m256i now = _mm256_add_epi32(chunk_at(offset + j), add), ends = _mm256_add_epi32(now, _mm256_set1_epi32(Bytes - 1));
    const __m256i left = _mm256_alignr_epi8(now, _mm256_permute2x128_si256(before, now, 0x21), 12);
    falls = _mm256_or_si256(falls, _mm256_xor_si256(_mm256_max_epu32(now, left), now));
    before = now;
    out.of64 += new_lines(now, ends, 6, before64);
    out.of128 += new_lines(now, ends, 7, before128);
  }
  out.rising = _mm256_testz_si256(falls, falls) != 0;
#else
  uint32_t before = start, before64 = start >> 6, before128 = start >> 7;
  for (unsigned j = 0; j < kLanes; ++j) {
    const uint32_t now = offset[j] + begin, ends = now + Bytes - 1;
    out.rising &= now >= before;
    before = now;
    out.of64 += static_cast<unsigned>((now >> 6) + 1 > before64) + static_cast<unsigned>((ends >> 6) + 1 > std::max(before64, (now >> 6) + 1));
    out.of128 += static_cast<unsigned>((now >> 7) + 1 > before128) + static_cast<unsigned>((ends >> 7) + 1 > std::max(before128, (now >> 7) + 1));
    before64 = (ends >> 6) + 1;
    before128 = (ends >> 7) + 1;
  }
#endif
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
  const Lines lines = lines_of<Bytes>(near.base, near.offset);
  if (lines.rising) {
    count.bytes += uint64_t{Bytes} * kLanes;
    count.lines64 += lines.of64;
    count.lines128 += lines.of128;
    return;
  }
  Addresses at;
  for (unsigned j = 0; j < kLanes; ++j) at.of[j] = near.base + near.offset[j];
  count_lines_of(count, at.of, kLanes, Bytes);
}

template <unsigned Bytes>
inline void mark_near(TouchedLines& touched, const Near& near, bool write) {
  TouchedRun run(touched, {Bytes, write, false});
  for (unsigned c = 0; c < kChunks; ++c) {
    const uint32_t* offset = near.offset + c * kChunk;
    if (near.shape[c] == Shape::other)
      for (unsigned j = 0; j < kChunk; ++j) run.add(near.base + offset[j], Bytes);
    else run.add(near.base + offset[0], Bytes * (near.shape[c] == Shape::piece ? kChunk : 1));
  }
  run.finish();
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
