// Matrix multiply and add: MFMA and the sparse SMFMAC. CDNA3 ISA, section 7. One function computes them all
// from a shape. The sum starts with C and adds one product after the other, k rising, each step rounded once
// (a fused multiply and add): the order inside of the hardware is not public. EXEC does not count here.
// Flags of an instruction: bits 0-3 cbsz, 4-7 abid, 8-11 blgp, 12-14 negations of a double's A, B, C.
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
T element(const u32* row, unsigned lane, unsigned e, Type type) {
  if (type == Type::f64) return static_cast<T>(lane_get<double>(row, lane));
  const unsigned per_word = 32 / bits(type);
  const u32 word = row[e / per_word * kLanes + lane];
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
  alignas(64) T a[kMostElements * 4];  // [block][row][k]; sparse: with the zeros
  alignas(64) T b[kMostElements * 4];  // [block][k][column]
};

template <class T>
void read_sources(Wave& w, const Instruction& i, const Shape& s, Sources<T>& out) {
  const unsigned groups = 64 / s.m;
  const unsigned per_block = groups / s.blocks;
  const unsigned dense = s.k / per_block;  // values of k that a lane has of B
  const u32* a = w.v[i.from[0].index];
  const u32* b = w.v[i.from[1].index];
  const unsigned cbsz = i.flags & 15, abid = i.flags >> 4 & 15, pattern = i.flags >> 8 & 15;
  if (s.sparse) std::memset(out.a, 0, sizeof(T) * s.m * s.k);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const unsigned row = lane % s.m, group = lane / s.m, block = group % s.blocks, first = group / s.blocks * dense;
    if (s.sparse) {
      const unsigned width = bits(s.a) == 16 ? 8 : 16;
      const u32 index = w.v[i.from[3].index][lane] >> (cbsz ? 0 : width * (abid & (32 / width - 1)));
      for (unsigned e = 0; e < dense / 2; ++e)
        out.a[row * s.k + first + 4 * (e / 2) + (index >> (2 * e) & 3)] += element<T>(a, lane, e, s.a);
    } else {
      const unsigned shared = cbsz == 0 ? block : (block & ~((1U << cbsz) - 1)) + (abid & ((1U << cbsz) - 1));
      const unsigned from = shared * s.m + row + group / s.blocks * s.blocks * s.m;
      for (unsigned e = 0; e < dense; ++e) out.a[(block * s.m + row) * s.k + first + e] = element<T>(a, from % kLanes, e, s.a);
    }
    const unsigned source = s.sparse ? lane : pattern_lane(lane, pattern);
    for (unsigned e = 0; e < dense; ++e) out.b[(block * s.k + first + e) * s.n + row] = element<T>(b, source, e, s.b);
  }
}

// Where D[row][column] of a block lies.
struct Cell { unsigned lane, word; };
Cell cell_of(const Shape& s, unsigned block, unsigned row, unsigned column) {
  if (s.a == Type::f64) {
    if (s.m == 4) return {column + 4 * block + 16 * row, 0};
    return {column + 16 * (row % 4), 2 * (row / 4)};
  }
  if (s.n == 4) return {column + 4 * block, row};
  const unsigned groups = 64 / s.n;
  return {column + s.n * (row / 4 % groups), block * (s.m * s.n / 64) + row / (4 * groups) * 4 + row % 4};
}

// All of them: word * 64 + lane.
struct Layout {
  uint16_t cell[2048];
  explicit Layout(const Shape& s) {
    unsigned k = 0;
    for (unsigned block = 0; block < s.blocks; ++block)
      for (unsigned row = 0; row < s.m; ++row)
        for (unsigned column = 0; column < s.n; ++column) {
          const Cell at = cell_of(s, block, row, column);
          cell[k++] = static_cast<uint16_t>(at.word * kLanes + at.lane);
        }
  }
};

template <class T, class Sum>
Sum add_product(T a, T b, Sum c) {
  if constexpr (std::is_same_v<T, float>) return __builtin_fmaf(a, b, c);
  else if constexpr (std::is_same_v<T, double>) return __builtin_fma(a, b, c);
  else return c + static_cast<Sum>(a * b);
}

template <class T, class Sum>
void multiply(Wave& w, const Instruction& i, const Shape& s, const Layout& layout) {
  static thread_local Sources<T> x;
  read_sources(w, i, s, x);
  constexpr unsigned kWords = sizeof(Sum) / 4;
  const bool inline_c = i.from[2].place == Place::constant;
  const u32* c = inline_c ? i.from[2].rows : w.v[i.from[2].index];
  u32* d = w.v[i.to[0].index];
  const unsigned negate = i.flags >> 12 & 7;
  alignas(64) u32 result[32 * kLanes];
  for (unsigned block = 0; block < s.blocks; ++block) {
    for (unsigned row = 0; row < s.m; ++row) {
      alignas(64) Sum sum[32];
      const uint16_t* cells = layout.cell + (block * s.m + row) * s.n;
      for (unsigned column = 0; column < s.n; ++column) {
        sum[column] = lane_get<Sum>(c, inline_c ? cells[column] % kLanes : cells[column]);
        if (negate & 4) sum[column] = -sum[column];
      }
      for (unsigned k = 0; k < s.k; ++k) {
        T a = x.a[(block * s.m + row) * s.k + k];
        if ((negate & 1) != (negate >> 1 & 1)) a = static_cast<T>(-a);
        const T* b = &x.b[(block * s.k + k) * s.n];
        for (unsigned column = 0; column < s.n; ++column) sum[column] = add_product(a, b[column], sum[column]);
      }
      for (unsigned column = 0; column < s.n; ++column) lane_put<Sum>(result, cells[column], sum[column]);
    }
  }
  const unsigned words = s.m * s.n * s.blocks / 64 * kWords;
  std::memcpy(d, result, sizeof(u32) * kLanes * words);
}

template <unsigned M, unsigned K, unsigned Blocks, Type A, Type B, bool Sparse>
void matrix(Wave& w, const Instruction& i) {
  static constexpr Shape kShape{M, M, K, Blocks, A, B, Sparse};
  static const Layout kLayout(kShape);
  if constexpr (A == Type::f64) multiply<double, double>(w, i, kShape, kLayout);
  else if constexpr (A == Type::i8) multiply<int32_t, u32>(w, i, kShape, kLayout);
  else multiply<float, float>(w, i, kShape, kLayout);
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
