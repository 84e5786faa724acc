/* Stands in for the trace decoder in tests: the documented C interface, and a canned stream of records.
 * The first byte of the trace chooses what happens: '1' to '4' that status, 'A' abort, 'H' hang,
 * 'M' endless memory, 'U' an instruction at an unknown address, 'I' notes about the trace,
 * 'E' no instruction; anything else one wave of three instructions. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct { uint64_t address, code_object_id; } pc_t;
typedef struct { pc_t pc; uint64_t time; uint8_t reserved, cu, simd, wave_id; uint32_t start : 1, rsvd : 31; } occupancy_t;
typedef struct { int32_t type, duration; } state_t;
typedef struct { uint32_t category : 8, stall : 24; int32_t duration; int64_t time; pc_t pc; } inst_t;
typedef struct {
    uint8_t cu, simd, wave_id, contexts;
    uint32_t rsvd[3];
    int64_t begin_time, end_time;
    uint64_t timeline_size, instructions_size;
    state_t *timeline;
    inst_t *instructions;
} wave_t;
typedef struct { int64_t shader_clock; uint64_t realtime_clock, reserved; } realtime_t;

typedef uint64_t (*data_cb)(uint8_t **, uint64_t *, void *);
typedef int (*trace_cb)(int, void *, uint64_t, void *);
typedef int (*isa_cb)(char *, uint64_t *, uint64_t *, pc_t, void *);

static int ask(isa_cb isa, pc_t pc, uint64_t *next, void *user)
{
    char text[256];
    uint64_t memory = 0, size = 2; /* too small: the needed size must come back */
    int status = isa(text, &memory, &size, pc, user);
    if (status == 2) status = isa(text, &memory, &size, pc, user);
    *next = pc.address + memory;
    return status;
}

int rocprof_trace_decoder_parse_data(data_cb data, trace_cb trace, isa_cb isa, void *user)
{
    uint8_t *bytes = 0;
    uint64_t size = 0;
    if (data(&bytes, &size, user) == 0) return 3;
    char mode = (char)bytes[0];
    if (data(&bytes, &size, user) != 0) return 1; /* the data ends */
    if (mode >= '1' && mode <= '4') return mode - '0';
    if (mode == 'A') abort();
    while (mode == 'H') sleep(1);
    while (mode == 'M') { char *p = malloc(1 << 24); if (!p) abort(); memset(p, 1, 1 << 24); }

    pc_t entry = {0x1000, 5};
    trace(0, (void *)(uintptr_t)9, 0, user);
    occupancy_t events[2] = {{entry, 100, 0, 1, 2, 3, 1, 0}, {entry, 180, 0, 1, 2, 3, 0, 0}};
    trace(1, events, 2, user);
    if (mode == 'E') return 0;
    uint64_t second, third, end;
    pc_t a = entry, b = {0, 5}, c = {0, 5};
    if (ask(isa, a, &second, user)) return 4;
    b.address = second;
    if (ask(isa, b, &third, user)) return 4;
    c.address = third;
    if (ask(isa, c, &end, user)) return 4;
    if (mode == 'U') { c.address = 0x9990; (void)ask(isa, c, &end, user); c.address = c.code_object_id = 0; }
    inst_t instructions[3] = {{1, 4, 8, 104, a}, {9, 40, 40, 116, b}, {11, 0, 24, 156, c}};
    state_t timeline[3] = {{1, 4}, {2, 12}, {3, 64}};
    wave_t wave = {1, 2, 3, 0, {0, 0, 0}, 100, 180, 3, 3, timeline, instructions};
    trace(3, &wave, 1, user);
    realtime_t clocks[2] = {{0, 0, 0}, {2100, 100, 0}};
    uint64_t frequency = 100000000;
    trace(8, &frequency, 1, user);
    trace(7, clocks, 2, user);
    int infos[2] = {1, 3};
    if (mode == 'I') trace(4, infos, 2, user);
    return 0;
}
