// Lane functions of which one row has another's: in the place of librpl-emu-baseline.so, which RPL_EMU_LANES names.
// RPL_EMU_EXCHANGE=to,from gives the row `to` the function of the row `from`.
#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "opcodes/table.h"

extern "C" __attribute__((visibility("default"))) void rpl_emu_lanes(rpl_emu::RowLists* out) {
  using namespace rpl_emu;
  static std::vector<std::vector<Row>> rows;
  static std::vector<RowList> lists;
  void* library = dlopen(std::getenv("RPL_EMU_LANES"), RTLD_NOW | RTLD_LOCAL);
  reinterpret_cast<void (*)(RowLists*)>(dlsym(library, "rpl_emu_lanes"))(out);
  const std::string both = std::getenv("RPL_EMU_EXCHANGE");
  const std::string to = both.substr(0, both.find(',')), from = both.substr(both.find(',') + 1);
  Execute other = nullptr;
  for (size_t n = 0; n < out->count; ++n) {
    rows.emplace_back(out->first[n].first, out->first[n].first + out->first[n].count);
    for (const Row& row : rows.back()) if (row.name == from) other = row.run;
  }
  for (auto& group : rows) {
    for (Row& row : group) if (row.name == to) row.run = other;
    lists.push_back({group.data(), group.size()});
  }
  out->first = lists.data();
}
