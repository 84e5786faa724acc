// Functions over 64 lanes from a function for one lane. The compiler makes vector code of the loops.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "machine/wave.h"
#include "opcodes/table.h"

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

#define RPL_LANES _Pragma("GCC ivdep") for (unsigned j = 0; j < kLanes; ++j)

namespace rpl_emu::inline RPL_EMU_BUILD {

struct Half { uint32_t bits; };      // 16 bits, the result's upper half is 0
struct Bit { uint32_t set; };        // one bit per lane, 0 or 1

template <class T>
inline constexpr bool kWide = sizeof(T) == 8;

template <class T>
inline T lane_get(const uint32_t* row, unsigned j) {
  if constexpr (kWide<T>) return std::bit_cast<T>(row[j] | uint64_t{row[kLanes + j]} << 32);
  else return std::bit_cast<T>(row[j]);
}

template <class T>
inline void lane_put(uint32_t* row, unsigned j, T value) {
  if constexpr (kWide<T>) {
    const auto bits = std::bit_cast<uint64_t>(value);
    row[j] = static_cast<uint32_t>(bits);
    row[kLanes + j] = static_cast<uint32_t>(bits >> 32);
  } else {
    row[j] = std::bit_cast<uint32_t>(value);
  }
}

inline void spread_bits(uint64_t mask, uint32_t* row) {
#ifdef __AVX512F__
  for (unsigned c = 0; c < 4; ++c)
    _mm512_storeu_si512(row + 16 * c, _mm512_maskz_set1_epi32(static_cast<__mmask16>(mask >> (16 * c)), 1));
#else
  const auto low = static_cast<uint32_t>(mask);
  const auto high = static_cast<uint32_t>(mask >> 32);
  for (unsigned j = 0; j < 32; ++j) row[j] = low >> j & 1;
  for (unsigned j = 0; j < 32; ++j) row[32 + j] = high >> j & 1;
#endif
}

// Rows of 0 or all ones to a mask.
inline uint64_t gather_bits(const uint32_t* row) {
  uint64_t mask = 0;
#ifdef __AVX512F__
  for (unsigned c = 0; c < 4; ++c) {
    const __m512i x = _mm512_loadu_si512(row + 16 * c);
    mask |= uint64_t{_mm512_cmplt_epi32_mask(x, _mm512_setzero_si512())} << (16 * c);
  }
#elif defined(__AVX2__)
  for (unsigned c = 0; c < 8; ++c) {
    const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row + 8 * c));
    mask |= uint64_t{static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(x)))} << (8 * c);
  }
#else
  for (unsigned j = 0; j < kLanes; ++j) mask |= uint64_t{row[j] & 1} << j;
#endif
  return mask;
}

struct alignas(64) Temporary { uint32_t words[2 * kLanes]; };

template <class T>
inline const uint32_t* source_rows(const Wave& w, const Operand& from, Temporary& space) {
  if (from.place == Place::vector) return w.v[from.index];
  if (from.place == Place::constant) return from.rows;
  if constexpr (std::is_same_v<T, Bit>) {
    spread_bits(w.scalar64(from), space.words);
  } else {
    const uint64_t value = kWide<T> ? w.scalar64(from) : w.scalar(from);
    for (unsigned j = 0; j < kLanes; ++j) space.words[j] = static_cast<uint32_t>(value);
    if constexpr (kWide<T>)
      for (unsigned j = 0; j < kLanes; ++j) space.words[kLanes + j] = static_cast<uint32_t>(value >> 32);
  }
  return space.words;
}

// Lanes that are off keep what they had.
inline void merge_rows(uint32_t* to, const uint32_t* from, uint64_t exec, unsigned rows) {
#ifdef __AVX512F__
  for (unsigned c = 0; c < 4 * rows; ++c)
    _mm512_mask_storeu_epi32(to + 16 * c, static_cast<__mmask16>(exec >> (16 * (c % 4))), _mm512_loadu_si512(from + 16 * c));
#elif defined(__AVX2__)
  const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  for (unsigned c = 0; c < 8; ++c) {
    const __m256i own = _mm256_and_si256(_mm256_set1_epi32(static_cast<int>(exec >> (8 * c) & 0xff)), bit);
    const __m256i on = _mm256_cmpeq_epi32(own, bit);
    for (unsigned r = 0; r < rows; ++r)
      _mm256_maskstore_epi32(reinterpret_cast<int*>(to + r * kLanes + 8 * c), on,
                             _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + r * kLanes + 8 * c)));
  }
#else
  alignas(64) uint32_t on[kLanes];
  spread_bits(exec, on);
  for (unsigned r = 0; r < rows; ++r)
    for (unsigned j = 0; j < kLanes; ++j)
      to[r * kLanes + j] = on[j] ? from[r * kLanes + j] : to[r * kLanes + j];
#endif
}

template <auto F, class D, class A>
inline void run_lanes(Wave& w, const Instruction& i, D (*)(A)) {
  Temporary ta, tr;
  const uint32_t* a = source_rows<A>(w, i.from[0], ta);
  const uint64_t exec = w.exec();
  uint32_t* d = w.v[i.to[0].index];
  uint32_t* r = exec == ~uint64_t{0} ? d : tr.words;
  RPL_LANES lane_put<D>(r, j, F(lane_get<A>(a, j)));
  if (r != d) merge_rows(d, r, exec, kWide<D> ? 2 : 1);
}

template <auto F, class D, class A, class B>
inline void run_lanes(Wave& w, const Instruction& i, D (*)(A, B)) {
  Temporary ta, tb, tr;
  const uint32_t* a = source_rows<A>(w, i.from[0], ta);
  const uint32_t* b = source_rows<B>(w, i.from[1], tb);
  const uint64_t exec = w.exec();
  uint32_t* d = w.v[i.to[0].index];
  uint32_t* r = exec == ~uint64_t{0} ? d : tr.words;
  RPL_LANES lane_put<D>(r, j, F(lane_get<A>(a, j), lane_get<B>(b, j)));
  if (r != d) merge_rows(d, r, exec, kWide<D> ? 2 : 1);
}

template <auto F, class D, class A, class B, class C>
inline void run_lanes(Wave& w, const Instruction& i, D (*)(A, B, C)) {
  Temporary ta, tb, tc, tr;
  const uint32_t* a = source_rows<A>(w, i.from[0], ta);
  const uint32_t* b = source_rows<B>(w, i.from[1], tb);
  const uint32_t* c = source_rows<C>(w, i.from[2], tc);
  const uint64_t exec = w.exec();
  uint32_t* d = w.v[i.to[0].index];
  uint32_t* r = exec == ~uint64_t{0} ? d : tr.words;
  RPL_LANES lane_put<D>(r, j, F(lane_get<A>(a, j), lane_get<B>(b, j), lane_get<C>(c, j)));
  if (r != d) merge_rows(d, r, exec, kWide<D> ? 2 : 1);
}

// D = F(sources), lane by lane.
template <auto F>
void lanes(Wave& w, const Instruction& i) { run_lanes<F>(w, i, +F); }

// The destination is one more source, the last: the decoder puts it there.
template <auto F>
void lanes_onto(Wave& w, const Instruction& i) { run_lanes<F>(w, i, +F); }

template <auto F, class A, class B>
inline uint64_t mask_of(Wave& w, const Instruction& i, bool (*)(A, B)) {
  Temporary ta, tb, tr;
  const uint32_t* a = source_rows<A>(w, i.from[0], ta);
  const uint32_t* b = source_rows<B>(w, i.from[1], tb);
  RPL_LANES tr.words[j] = F(lane_get<A>(a, j), lane_get<B>(b, j)) ? ~0U : 0U;
  return gather_bits(tr.words) & w.exec();
}

// Comparisons: bits of lanes that are off become 0.
template <auto F>
void compare(Wave& w, const Instruction& i) { w.set64(i.to[0].index, mask_of<F>(w, i, +F)); }

template <auto F>
void compare_to_exec(Wave& w, const Instruction& i) {
  const uint64_t mask = mask_of<F>(w, i, +F);
  if (i.to[0].place == Place::scalar) w.set64(i.to[0].index, mask);
  w.set_exec(mask);
}

struct Carried { uint32_t value; bool carry; };

// D and a carry out per lane; `F` is called with (a, b, carry in).
template <auto F, bool In>
void carry_lanes(Wave& w, const Instruction& i) {
  Temporary ta, tb, tc, tr, tm;
  const uint32_t* a = source_rows<uint32_t>(w, i.from[0], ta);
  const uint32_t* b = source_rows<uint32_t>(w, i.from[1], tb);
  const uint32_t* c = tc.words;
  if constexpr (In) c = source_rows<Bit>(w, i.from[2], tc);
  else for (unsigned j = 0; j < kLanes; ++j) tc.words[j] = 0;
  const uint64_t exec = w.exec();
  RPL_LANES {
    const Carried out = F(a[j], b[j], c[j]);
    tr.words[j] = out.value;
    tm.words[j] = out.carry ? ~0U : 0U;
  }
  merge_rows(w.v[i.to[0].index], tr.words, exec, 1);
  w.set64(i.to[1].index, gather_bits(tm.words) & exec);
}

}  // namespace rpl_emu::inline RPL_EMU_BUILD

#define RPL_ROW(name, signature, counter, function) \
  { #name, Form::vector, signature, counter, function, "" }
#define RPL_APPROXIMATE(name, signature, counter, function) \
  { #name, Form::vector, signature, counter, function, kApproximate }
