// Kernels whose only result is a variable of their module, and some that leave pointers to their code in memory and
// call what is there: -DVERSION=1 counts otherwise.
#ifndef VERSION
#define VERSION 0
#endif

#define DEVICE __attribute__((device))
#define KERNEL __attribute__((global))
#define ITEM (__builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x())

DEVICE unsigned ticks = 5;
DEVICE unsigned* where_ticks_are = &ticks;

KERNEL void tick(const unsigned* values) {
  if (ITEM == 0) ticks += VERSION == 1 ? values[0] + 1 : values[0];
}

typedef unsigned (*Function)(unsigned);
DEVICE __attribute__((noinline, used)) unsigned twice(unsigned x) { return 2 * x; }
DEVICE __attribute__((noinline, used)) unsigned thrice(unsigned x) { return 3 * x; }

struct Shape {
  unsigned side;
  DEVICE explicit Shape(unsigned s) : side(s) {}
  DEVICE virtual unsigned corners(unsigned x) const { return side + x; }
};
struct Square : Shape {
  DEVICE explicit Square(unsigned s) : Shape(s) {}
  DEVICE unsigned corners(unsigned x) const override { return 4 * side + x; }
};
DEVICE inline void* operator new(__SIZE_TYPE__, void* place) { return place; }

// Two function pointers, then an object with a virtual function.
struct Table {
  Function functions[2];
  Square square;
};

KERNEL void remember(Table* table) {
  if (ITEM != 0) return;
  table->functions[0] = &twice;
  table->functions[1] = &thrice;
  new (&table->square) Square(7);
}

KERNEL void call_functions(const Table* table, unsigned* results) {
  results[ITEM] = table->functions[ITEM % 2](ITEM);
}

KERNEL void call_virtual(const Table* table, unsigned* results) {
  const Shape* shape = &table->square;
  results[ITEM] = shape->corners(ITEM);
}
