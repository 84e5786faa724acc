#include "model/issue.h"

#include <string_view>

namespace rpl_emu {
namespace {

// Four rows and columns are the quickest; several blocks, and floats of 32 bits, take twice what one block takes.
Issue matrix_issue(std::string_view name, std::string_view counter) {
  if (counter == "mfma.f64") return {Unit::vector, name.find("16x16x4") != std::string_view::npos ? 8U : 4U};
  if (name.find("_4x4x") != std::string_view::npos) return {Unit::matrix, 2};
  const bool slow = counter == "mfma.f32" || name.find("_2b_") != std::string_view::npos || name.find("_4b_") != std::string_view::npos;
  const unsigned passes = name.find("_32x32x") != std::string_view::npos ? 8 : 4;
  return {Unit::matrix, slow ? 2 * passes : passes};
}

}  // namespace

Issue issue_of(const Row& row) {
  const std::string_view counter = row.counter;
  if (counter.starts_with("mfma.")) return matrix_issue(row.name, counter);
  if (counter.starts_with("valu.")) return {Unit::vector, 1};
  if (counter == "salu") return {Unit::scalar, 1};
  if (counter == "smem" || counter == "gds" || counter.starts_with("lds.")) return {Unit::lds_and_scalar_memory, 1};
  if (counter == "branch") return {Unit::branch, 1};
  if (counter == "internal" || counter == "barrier" || counter == "cache") return {};
  return {Unit::memory, 1};
}

}  // namespace rpl_emu
