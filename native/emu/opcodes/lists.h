// The groups of opcodes that work on lanes.
#pragma once

#include "opcodes/table.h"

namespace rpl_emu::inline RPL_EMU_BUILD {

RowList vector_integer_rows();
RowList vector_16_rows();
RowList vector_float_rows();
RowList vector_double_rows();
RowList convert_rows();
RowList compare_rows();
RowList packed_rows();
RowList matrix_rows();
RowList lds_rows();
RowList global_rows();
RowList buffer_rows();

// Sources are changed, the plain operation runs, its result is changed.
void run_modified(Wave& w, const Instruction& i);

}  // namespace rpl_emu::inline RPL_EMU_BUILD
