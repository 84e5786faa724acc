// Matrix multiply and add: MFMA and the sparse SMFMAC. CDNA3 ISA, section 7. One function computes them all
// from a shape. The sum starts with C and adds one product after the other, k rising, each step rounded once
// (a fused multiply and add): the order inside of the hardware is not public. EXEC does not count here.
// Flags of an instruction: bits 0-3 cbsz, 4-7 abid, 8-11 blgp, 12-14 negations of a double's A, B, C, 15 MODE may flush or round.
#include <algorithm>

#include "opcodes/lanes.h"
#include "opcodes/lists.h"
#include "opcodes/numbers.h"

namespace rpl_emu::inline RPL_EMU_BUILD {
namespace {

enum class Type : uint8_t { f32, xf32, f16, bf16, i8, fp8, bf8, f64 };
struct Shape {
  unsigned m, n, k, blocks;
  Type a, b;
  bool sparse;
};
constexpr unsigned bits(Type t) { return t == Type::f64 ? 64 : t == Type::f32 || t == Type::xf32 ? 32 : t == Type::f16 || t == Type::bf16 ? 16 : 8; }

// XF32 keeps ten bits of fraction.
float shortened(u32 x) {
  if (is_nan(float_of(x)) || (x & 0x7fffffff) == 0x7f800000) return float_of(x);
  return float_of((x + 0xfff + (x >> 13 & 1)) & ~0x1fffU);
}
template <class T>
inline __attribute__((always_inline)) T element(const u32* row, unsigned lane, unsigned e, Type type) {
  if (type == Type::f64) return static_cast<T>(lane_get<double>(row, lane));
  const unsigned per_word = 32 / bits(type);
  const u32 word = (row + size_t{e / per_word} * kLanes)[lane];
  const u32 part = word >> (bits(type) % 32 * (e % per_word));
  switch (type) {
    case Type::f32: return static_cast<T>(float_of(word));
    case Type::xf32: return static_cast<T>(shortened(word));
    case Type::f16: return static_cast<T>(from_half(part & 0xffff));
    case Type::bf16: return static_cast<T>(from_bfloat(part & 0xffff));
    case Type::fp8: return static_cast<T>(from_float8(part, kFp8));
    case Type::bf8: return static_cast<T>(from_float8(part, kBf8));
    case Type::i8: return static_cast<T>(static_cast<int8_t>(part));
    case Type::f64: break;
  }
  return T{};
}

// The lane whose B a lane uses.
unsigned pattern_lane(unsigned lane, unsigned pattern) {
  switch (pattern) {
    case 1: return lane & 31;
    case 2: return lane | 32;
    case 3: return (lane + 16) & 63;
    case 0: return lane;
    default: return (lane & 15) + 16 * (pattern - 4);
  }
}

constexpr unsigned kMostElements = 64 * 16;  // of A or B: lanes by values of a lane

template <class T>
struct Sources {
  alignas(64) T a[kMostElements * 4];  // [block][k][row]; sparse: with the zeros
  alignas(64) T b[kMostElements * 4];  // [block][k][column]
};

// What of a shape lies where. Lane = row (or column) + m * group; a group's values of k follow each other.
template <Shape S>
struct Places {
  static constexpr unsigned kGroups = 64 / S.m;
  static constexpr unsigned kDense = S.k / (kGroups / S.blocks);  // values of k that a lane has of B
  static constexpr unsigned block(unsigned group) { return group % S.blocks; }
  static constexpr unsigned first(unsigned group) { return group / S.blocks * kDense; }
  static constexpr unsigned at(unsigned group, unsigned e) { return (block(group) * S.k + first(group) + e) * S.m; }
};

// A group's rows of one value of k: neighbours in the registers and in `out`.
template <class T, Type Kind, unsigned M>
void read_group(const u32* rows, unsigned first_lane, unsigned e, T* out) {
  rows += first_lane;  // neighbours as the compiler sees them: sums of 32 bits might wrap
  for (unsigned row = 0; row < M; ++row) out[row] = element<T>(rows, row, e, Kind);
}

template <class T, Shape S>
void read_sparse(Wave& w, const Instruction& i, const u32* a, Sources<T>& out) {
  using P = Places<S>;
  const unsigned cbsz = i.flags & 15, abid = i.flags >> 4 & 15;
  std::fill_n(out.a, S.m * S.k, T{});
  constexpr unsigned kWidth = bits(S.a) == 16 ? 8 : 16;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const unsigned row = lane % S.m, first = P::first(lane / S.m);
    const u32 index = w.v[i.from[3].index][lane] >> (cbsz ? 0 : kWidth * (abid & (32 / kWidth - 1)));
    for (unsigned e = 0; e < P::kDense / 2; ++e)
      out.a[(first + 4 * (e / 2) + (index >> (2 * e) & 3)) * S.m + row] += element<T>(a, lane, e, S.a);
  }
}

template <class T, Shape S>
void read_sources(Wave& w, const Instruction& i, Sources<T>& out) {
  using P = Places<S>;
  const u32* a = w.v[i.from[0].index];
  const u32* b = w.v[i.from[1].index];
  const unsigned cbsz = S.sparse ? 0 : i.flags & 15, abid = i.flags >> 4 & 15, pattern = S.sparse ? 0 : i.flags >> 8 & 15;
  if constexpr (S.sparse) read_sparse<T, S>(w, i, a, out);
  for (unsigned group = 0; group < P::kGroups; ++group) {
    // Another block's A for all (CBSZ), which block of theirs (ABID).
    const unsigned block = P::block(group);
    const unsigned shared = cbsz == 0 ? block : (block & ~((1U << cbsz) - 1)) + (abid & ((1U << cbsz) - 1));
    const unsigned from = (shared * S.m + group / S.blocks * S.blocks * S.m) % kLanes;
    for (unsigned e = 0; e < P::kDense; ++e) {
      if constexpr (!S.sparse) read_group<T, S.a, S.m>(a, from, e, &out.a[P::at(group, e)]);
      T* to = &out.b[P::at(group, e)];
      if (pattern == 0) read_group<T, S.b, S.m>(b, group * S.m, e, to);
      else for (unsigned column = 0; column < S.n; ++column) to[column] = element<T>(b, pattern_lane(group * S.m + column, pattern), e, S.b);
    }
  }
}

// Where D[row][0] of a block lies, as word * 64 + lane; the row's other columns are in the lanes behind it.
template <Shape S>
constexpr unsigned cell_of(unsigned block, unsigned row) {
  if (S.a == Type::f64) return S.m == 4 ? 4 * block + 16 * row : 2 * (row / 4) * kLanes + 16 * (row % 4);
  if (S.n == 4) return row * kLanes + 4 * block;
  constexpr unsigned kGroups = 64 / S.n;
  return (block * (S.m * S.n / 64) + row / (4 * kGroups) * 4 + row % 4) * kLanes + S.n * (row / 4 % kGroups);
}

// Neighbouring columns of a row of D: one, or as many as a vector register of this build holds.
template <class T, class Sum>
struct Column {
  static constexpr unsigned kWidth = 1;
  Sum value;
  void read(const Sum* from) { value = *from; }
  void write(Sum* to) const { *to = value; }
  void add_product(T a, const T* b) {
    if constexpr (std::is_same_v<T, float>) value = __builtin_fmaf(a, *b, value);
    else if constexpr (std::is_same_v<T, double>) value = __builtin_fma(a, *b, value);
    else value += static_cast<Sum>(a * *b);
  }
};
template <class T, class Sum>
struct Columns : Column<T, Sum> {};
#ifdef __AVX512F__
template <>
struct Columns<float, float> {
  static constexpr unsigned kWidth = 16;
  __m512 value;
  void read(const float* from) { value = _mm512_loadu_ps(from); }
  void write(float* to) const { _mm512_storeu_ps(to, value); }
  void add_product(float a, const float* b) { value = _mm512_fmadd_ps(_mm512_set1_ps(a), _mm512_loadu_ps(b), value); }
};
template <>
struct Columns<double, double> {
  static constexpr unsigned kWidth = 8;
  __m512d value;
  void read(const double* from) { value = _mm512_loadu_pd(from); }
  void write(double* to) const { _mm512_storeu_pd(to, value); }
  void add_product(double a, const double* b) { value = _mm512_fmadd_pd(_mm512_set1_pd(a), _mm512_loadu_pd(b), value); }
};
template <>
struct Columns<int32_t, u32> {
  static constexpr unsigned kWidth = 16;
  __m512i value;
  void read(const u32* from) { value = _mm512_loadu_si512(from); }
  void write(u32* to) const { _mm512_storeu_si512(to, value); }
  void add_product(int32_t a, const int32_t* b) { value = _mm512_add_epi32(value, _mm512_mullo_epi32(_mm512_set1_epi32(a), _mm512_loadu_si512(b))); }
};
#elif defined(__AVX2__)
template <>
struct Columns<float, float> {
  static constexpr unsigned kWidth = 8;
  __m256 value;
  void read(const float* from) { value = _mm256_loadu_ps(from); }
  void write(float* to) const { _mm256_storeu_ps(to, value); }
  void add_product(float a, const float* b) { value = _mm256_fmadd_ps(_mm256_set1_ps(a), _mm256_loadu_ps(b), value); }
};
template <>
struct Columns<double, double> {
  static constexpr unsigned kWidth = 4;
  __m256d value;
  void read(const double* from) { value = _mm256_loadu_pd(from); }
  void write(double* to) const { _mm256_storeu_pd(to, value); }
  void add_product(double a, const double* b) { value = _mm256_fmadd_pd(_mm256_set1_pd(a), _mm256_loadu_pd(b), value); }
};
template <>
struct Columns<int32_t, u32> {
  static constexpr unsigned kWidth = 8;
  __m256i value;
  void read(const u32* from) { value = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); }
  void write(u32* to) const { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), value); }
  void add_product(int32_t a, const int32_t* b) {
    value = _mm256_add_epi32(value, _mm256_mullo_epi32(_mm256_set1_epi32(a), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b))));
  }
};
#endif

// `Rows` rows of a block's D, all N columns, from A and B by k. Sums of several rows go on side by side: each waits for itself only.
template <class T, class Sum, unsigned N>
using ColumnsOf = std::conditional_t<(N % Columns<T, Sum>::kWidth == 0), Columns<T, Sum>, Column<T, Sum>>;
template <class T, class Sum, unsigned N, unsigned K, unsigned M, unsigned Rows>
void add_products(const T* a, const T* b, Sum (*sum)[N]) {
  using One = ColumnsOf<T, Sum, N>;
  constexpr unsigned kParts = N / One::kWidth;
  One part[Rows][kParts];
  for (unsigned row = 0; row < Rows; ++row)
    for (unsigned p = 0; p < kParts; ++p) part[row][p].read(&sum[row][p * One::kWidth]);
  for (unsigned k = 0; k < K; ++k)
    for (unsigned row = 0; row < Rows; ++row)
      for (unsigned p = 0; p < kParts; ++p) part[row][p].add_product(a[k * M + row], &b[k * N + p * One::kWidth]);
  for (unsigned row = 0; row < Rows; ++row)
    for (unsigned p = 0; p < kParts; ++p) part[row][p].write(&sum[row][p * One::kWidth]);
}

// What MODE does to matrices the public documents do not say. Where it rounds as usual and no value can come near to a
// denormal it can't do anything: the smallest place of each product and of C, so that of all sums, is that of a normal number.
template <class T, Shape S, class Sum>
bool mode_matters(const Wave& w, const Sources<T>& x, const u32* c, unsigned words_of_c) {
  if constexpr (S.a == Type::i8) return false;
  if (w.mode & 15) return true;
  if ((w.mode >> 4 & 15) == 15) return false;
  constexpr int kFraction = std::is_same_v<T, double> ? 52 : 23, kLeast = std::is_same_v<T, double> ? -1022 : -126;
  const auto exponent = [](T value) {
    int e = 0;
    return value == 0 || !std::isfinite(value) ? 1 << 20 : (std::frexp(value, &e), e - 1);
  };
  int least_a = 1 << 20, least_b = 1 << 20, least_c = 1 << 20;
  for (unsigned k = 0; k < S.blocks * S.k * S.m; ++k) {
    least_a = std::min(least_a, exponent(x.a[k]));
    least_b = std::min(least_b, exponent(x.b[k]));
  }
  for (unsigned k = 0; k < words_of_c / (sizeof(Sum) / 4); ++k) {
    const unsigned lane = k % kLanes, row = k / kLanes * (sizeof(Sum) / 4);
    least_c = std::min(least_c, exponent(static_cast<T>(lane_get<Sum>(c + size_t{row} * kLanes, lane))));
  }
  const auto of_source = [](Type type) { return type == Type::f16 ? -14 : type == Type::fp8 || type == Type::bf8 ? -1000 : kLeast; };
  return least_a < of_source(S.a) || least_b < of_source(S.b) || least_a + least_b - 2 * kFraction < kLeast || least_c - kFraction < kLeast;
}

template <class T, class Sum, Shape S>
void multiply(Wave& w, const Instruction& i) {
  static thread_local Sources<T> x;
  read_sources<T, S>(w, i, x);
  constexpr unsigned kWords = sizeof(Sum) / 4;
  const bool inline_c = i.from[2].place == Place::constant;
  const u32* c = inline_c ? i.from[2].rows : w.v[i.from[2].index];
  if (i.flags >> 15 & 1 && mode_matters<T, S, Sum>(w, x, c, inline_c ? sizeof(Sum) / 4 * kLanes : S.m * S.n * S.blocks * kWords)) {
    w.refuse("a matrix operation while MODE rounds otherwise than to the nearest, or on numbers near the denormals that it flushes, which is not offered");
    return;
  }
  const unsigned negate = i.flags >> 12 & 7;
  if ((negate & 1) != (negate >> 1 & 1))
    for (unsigned k = 0; k < S.blocks * S.k * S.m; ++k) x.a[k] = static_cast<T>(-x.a[k]);
  alignas(64) u32 result[32 * kLanes];
  constexpr unsigned kSums = 8;  // vector registers: an addition takes four cycles, and two begin in each
  constexpr unsigned kRowsTogether = std::min(S.m, std::max(1U, kSums * ColumnsOf<T, Sum, S.n>::kWidth / S.n));
  for (unsigned block = 0; block < S.blocks; ++block) {
    for (unsigned first = 0; first < S.m; first += kRowsTogether) {
      alignas(64) Sum sum[kRowsTogether][S.n];
      for (unsigned row = 0; row < kRowsTogether; ++row) {
        const u32* from = inline_c ? c : c + cell_of<S>(block, first + row);
        for (unsigned column = 0; column < S.n; ++column) {
          const Sum one = lane_get<Sum>(from, column);
          sum[row][column] = negate & 4 ? -one : one;
        }
      }
      add_products<T, Sum, S.n, S.k, S.m, kRowsTogether>(&x.a[block * S.k * S.m + first], &x.b[block * S.k * S.n], sum);
      for (unsigned row = 0; row < kRowsTogether; ++row) {
        u32* to = result + cell_of<S>(block, first + row);
        for (unsigned column = 0; column < S.n; ++column) lane_put<Sum>(to, column, sum[row][column]);
      }
    }
  }
  constexpr unsigned kRows = S.m * S.n * S.blocks / 64 * kWords;
  std::memcpy(w.v[i.to[0].index], result, sizeof(u32) * kLanes * kRows);
}

template <unsigned M, unsigned K, unsigned Blocks, Type A, Type B, bool Sparse>
void matrix(Wave& w, const Instruction& i) {
  constexpr Shape kShape{M, M, K, Blocks, A, B, Sparse};
  if constexpr (A == Type::f64) multiply<double, double, kShape>(w, i);
  else if constexpr (A == Type::i8) multiply<int32_t, u32, kShape>(w, i);
  else multiply<float, float, kShape>(w, i);
}

constexpr const char* kOrder = "sum of k rising, a rounding each step; the hardware's order is not public";
constexpr const char* kShort = "sum of k rising, a rounding each step; factors rounded to ten bits of fraction: not public either";
#define RPL_MFMA(name, signature, counter, M, K, Blocks, T) \
  {"v_mfma_" name, Form::matrix, signature, "mfma." counter, matrix<M, K, Blocks, Type::T, Type::T, false>, Type::T == Type::i8 ? "" : kOrder}
#define RPL_EIGHT(A, B)                                                                                               \
  {"v_mfma_f32_16x16x32_" #A "_" #B, Form::matrix, "4:224", "mfma.f8", matrix<16, 32, 1, Type::A, Type::B, false>, kOrder}, \
  {"v_mfma_f32_32x32x16_" #A "_" #B, Form::matrix, "x:22x", "mfma.f8", matrix<32, 16, 1, Type::A, Type::B, false>, kOrder}, \
  {"v_smfmac_f32_16x16x64_" #A "_" #B, Form::matrix, "4:2441", "mfma.f8", matrix<16, 64, 1, Type::A, Type::B, true>, kOrder}, \
  {"v_smfmac_f32_32x32x32_" #A "_" #B, Form::matrix, "x:24x1", "mfma.f8", matrix<32, 32, 1, Type::A, Type::B, true>, kOrder}
#define RPL_SIXTEEN(T)                                                                                                \
  RPL_MFMA("f32_32x32x4_2b_" #T, "y:22y", #T, 32, 4, 2, T), RPL_MFMA("f32_16x16x4_4b_" #T, "x:22x", #T, 16, 4, 4, T),  \
  RPL_MFMA("f32_4x4x4_16b_" #T, "4:224", #T, 4, 4, 16, T), RPL_MFMA("f32_32x32x8_" #T, "x:22x", #T, 32, 8, 1, T),      \
  RPL_MFMA("f32_16x16x16_" #T, "4:224", #T, 16, 16, 1, T),                                                             \
  {"v_smfmac_f32_16x16x32_" #T, Form::matrix, "4:2441", "mfma." #T, matrix<16, 32, 1, Type::T, Type::T, true>, kOrder},  \
  {"v_smfmac_f32_32x32x16_" #T, Form::matrix, "x:24x1", "mfma." #T, matrix<32, 16, 1, Type::T, Type::T, true>, kOrder}

void copy_row(Wave& w, const Instruction& i) {
  Temporary space;
  merge_rows(w.v[i.to[0].index], source_rows<u32>(w, i.from[0], space), w.exec(), 1);
}

const Row kRows[] = {
    RPL_MFMA("f32_32x32x1_2b_f32", "y:11y", "f32", 32, 1, 2, f32), RPL_MFMA("f32_16x16x1_4b_f32", "x:11x", "f32", 16, 1, 4, f32),
    RPL_MFMA("f32_4x4x1_16b_f32", "4:114", "f32", 4, 1, 16, f32), RPL_MFMA("f32_32x32x2_f32", "x:11x", "f32", 32, 2, 1, f32),
    RPL_MFMA("f32_16x16x4_f32", "4:114", "f32", 16, 4, 1, f32),
    RPL_SIXTEEN(f16), RPL_SIXTEEN(bf16),
    RPL_MFMA("i32_32x32x4_2b_i8", "y:11y", "i8", 32, 4, 2, i8), RPL_MFMA("i32_16x16x4_4b_i8", "x:11x", "i8", 16, 4, 4, i8),
    RPL_MFMA("i32_4x4x4_16b_i8", "4:114", "i8", 4, 4, 16, i8), RPL_MFMA("i32_32x32x16_i8", "x:22x", "i8", 32, 16, 1, i8),
    RPL_MFMA("i32_16x16x32_i8", "4:224", "i8", 16, 32, 1, i8),
    {"v_smfmac_i32_16x16x64_i8", Form::matrix, "4:2441", "mfma.i8", matrix<16, 64, 1, Type::i8, Type::i8, true>, ""},
    {"v_smfmac_i32_32x32x32_i8", Form::matrix, "x:24x1", "mfma.i8", matrix<32, 32, 1, Type::i8, Type::i8, true>, ""},
    RPL_MFMA("f64_16x16x4_f64", "8:228", "f64", 16, 4, 1, f64), RPL_MFMA("f64_4x4x4_4b_f64", "2:222", "f64", 4, 4, 4, f64),
    {"v_mfma_f32_16x16x8_xf32", Form::matrix, "4:224", "mfma.xf32", matrix<16, 8, 1, Type::xf32, Type::xf32, false>, kShort},
    {"v_mfma_f32_32x32x4_xf32", Form::matrix, "x:22x", "mfma.xf32", matrix<32, 4, 1, Type::xf32, Type::xf32, false>, kShort},
    RPL_EIGHT(fp8, fp8), RPL_EIGHT(fp8, bf8), RPL_EIGHT(bf8, fp8), RPL_EIGHT(bf8, bf8),
    {"v_accvgpr_read_b32", Form::accumulator, "u:u", "valu.other", copy_row, ""},
    {"v_accvgpr_write_b32", Form::accumulator, "u:u", "valu.other", copy_row, ""},
    {"v_accvgpr_mov_b32", Form::accumulator, "u:u", "valu.other", copy_row, ""},
};

}  // namespace
RowList matrix_rows() { return {kRows, sizeof kRows / sizeof *kRows}; }
}  // namespace rpl_emu::inline RPL_EMU_BUILD
