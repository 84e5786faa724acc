// Stands in for libcupti: gives the records that a text file lists, in buffers as CUPTI does, to whoever registered callbacks.
// Built twice: with FAKE_PROGRAM as a program that loads an injected library the way the CUDA driver does, else as the library.
#include <cupti.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <unistd.h>

#ifdef FAKE_PROGRAM
int main(int argc, char** argv) {
    const char* injected = std::getenv("CUDA_INJECTION64_PATH");
    if (injected != nullptr && argc > 1 && std::strcmp(argv[1], "no-cuda") != 0) {
        void* library = dlopen(injected, RTLD_NOW);
        if (library == nullptr) return std::fprintf(stderr, "%s\n", dlerror()), 3;
        reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"))();
        if (std::strcmp(argv[1], "dies") == 0) _exit(0);
    }
    return 0;
}
#else
namespace {
CUpti_BuffersCallbackRequestFunc requested;
CUpti_BuffersCallbackCompleteFunc completed;
std::set<CUpti_ActivityKind> enabled;
std::set<std::string> names;  // records point to their texts
uint8_t* buffer;
size_t room, used, next;

const char* kept(const std::string& text) { return names.insert(text).first->c_str(); }

template <typename Record>
void add(const Record& record) {
    if (enabled.count(record.kind) == 0) return;
    if (buffer != nullptr && used + sizeof(Record) > room) {
        next = 0;
        completed(nullptr, 0, buffer, room, used);
        buffer = nullptr;
    }
    if (buffer == nullptr) {
        size_t most = 0;
        requested(&buffer, &room, &most);
        if (const char* small = std::getenv("FAKE_CUPTI_BUFFER")) room = std::strtoul(small, nullptr, 10);
        used = 0;
    }
    std::memcpy(buffer + used, &record, sizeof(Record));
    used += sizeof(Record);
}

size_t size_of(CUpti_ActivityKind kind) {
    switch (kind) {
        case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return sizeof(CUpti_ActivityKernel10);
        case CUPTI_ACTIVITY_KIND_MEMCPY: return sizeof(CUpti_ActivityMemcpy6);
        case CUPTI_ACTIVITY_KIND_MEMSET: return sizeof(CUpti_ActivityMemset4);
        case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: return sizeof(CUpti_ActivitySynchronization2);
        case CUPTI_ACTIVITY_KIND_CUDA_EVENT: return sizeof(CUpti_ActivityCudaEvent2);
        case CUPTI_ACTIVITY_KIND_STREAM: return sizeof(CUpti_ActivityStream);
        case CUPTI_ACTIVITY_KIND_CONTEXT: return sizeof(CUpti_ActivityContext3);
        case CUPTI_ACTIVITY_KIND_DEVICE: return sizeof(CUpti_ActivityDevice5);
        default: return sizeof(CUpti_ActivityAPI);
    }
}

// One line is one record: its word, then its fields in the order in which they are read here.
void give(const std::string& line) {
    std::istringstream in(line);
    std::string what, text;
    in >> what;
    const auto number = [&in] {
        long long value = 0;
        in >> value;
        return value;
    };
    if (what == "kernel") {
        CUpti_ActivityKernel10 k{};
        k.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
        k.start = static_cast<decltype(k.start)>(number());
        k.end = static_cast<decltype(k.end)>(number());
        k.contextId = static_cast<decltype(k.contextId)>(number());
        k.streamId = static_cast<decltype(k.streamId)>(number());
        k.correlationId = static_cast<decltype(k.correlationId)>(number());
        k.gridX = static_cast<decltype(k.gridX)>(number());
        k.blockX = static_cast<decltype(k.blockX)>(number());
        k.staticSharedMemory = static_cast<decltype(k.staticSharedMemory)>(number());
        k.dynamicSharedMemory = static_cast<decltype(k.dynamicSharedMemory)>(number());
        k.registersPerThread = static_cast<decltype(k.registersPerThread)>(number());
        in >> text;
        k.gridY = k.gridZ = k.blockY = k.blockZ = 1;
        k.name = kept(text);
        add(k);
    } else if (what == "copy") {
        CUpti_ActivityMemcpy6 c{};
        unsigned kind = 0;
        c.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
        c.start = static_cast<decltype(c.start)>(number());
        c.end = static_cast<decltype(c.end)>(number());
        c.contextId = static_cast<decltype(c.contextId)>(number());
        c.streamId = static_cast<decltype(c.streamId)>(number());
        c.correlationId = static_cast<decltype(c.correlationId)>(number());
        c.bytes = static_cast<decltype(c.bytes)>(number());
        kind = static_cast<unsigned>(number());
        c.copyKind = static_cast<uint8_t>(kind);
        add(c);
    } else if (what == "fill") {
        CUpti_ActivityMemset4 f{};
        f.kind = CUPTI_ACTIVITY_KIND_MEMSET;
        f.start = static_cast<decltype(f.start)>(number());
        f.end = static_cast<decltype(f.end)>(number());
        f.contextId = static_cast<decltype(f.contextId)>(number());
        f.streamId = static_cast<decltype(f.streamId)>(number());
        f.correlationId = static_cast<decltype(f.correlationId)>(number());
        f.bytes = static_cast<decltype(f.bytes)>(number());
        add(f);
    } else if (what == "runtime" || what == "driver") {
        CUpti_ActivityAPI a{};
        a.kind = what == "runtime" ? CUPTI_ACTIVITY_KIND_RUNTIME : CUPTI_ACTIVITY_KIND_DRIVER;
        a.start = static_cast<decltype(a.start)>(number());
        a.end = static_cast<decltype(a.end)>(number());
        a.correlationId = static_cast<decltype(a.correlationId)>(number());
        in >> text;
        a.processId = static_cast<uint32_t>(getpid());
        a.threadId = a.processId;
        setenv((what + std::to_string(a.correlationId)).c_str(), text.c_str(), 1);
        a.cbid = a.correlationId;
        add(a);
    } else if (what == "synchronization") {
        CUpti_ActivitySynchronization2 s{};
        unsigned type = 0;
        s.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
        s.start = static_cast<decltype(s.start)>(number());
        s.end = static_cast<decltype(s.end)>(number());
        s.contextId = static_cast<decltype(s.contextId)>(number());
        s.streamId = static_cast<decltype(s.streamId)>(number());
        s.correlationId = static_cast<decltype(s.correlationId)>(number());
        s.cudaEventId = static_cast<decltype(s.cudaEventId)>(number());
        type = static_cast<unsigned>(number());
        s.type = static_cast<CUpti_ActivitySynchronizationType>(type);
        add(s);
    } else if (what == "event") {
        CUpti_ActivityCudaEvent2 e{};
        e.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT;
        e.contextId = static_cast<decltype(e.contextId)>(number());
        e.streamId = static_cast<decltype(e.streamId)>(number());
        e.correlationId = static_cast<decltype(e.correlationId)>(number());
        e.eventId = static_cast<decltype(e.eventId)>(number());
        add(e);
    } else if (what == "stream") {
        CUpti_ActivityStream s{};
        unsigned flag = 0;
        s.kind = CUPTI_ACTIVITY_KIND_STREAM;
        s.contextId = static_cast<decltype(s.contextId)>(number());
        s.streamId = static_cast<decltype(s.streamId)>(number());
        flag = static_cast<unsigned>(number());
        s.flag = static_cast<CUpti_ActivityStreamFlag>(flag);
        add(s);
    } else if (what == "context") {
        CUpti_ActivityContext3 c{};
        c.kind = CUPTI_ACTIVITY_KIND_CONTEXT;
        c.contextId = static_cast<decltype(c.contextId)>(number());
        c.nullStreamId = static_cast<decltype(c.nullStreamId)>(number());
        add(c);
    } else if (what == "device") {
        CUpti_ActivityDevice5 d{};
        d.kind = CUPTI_ACTIVITY_KIND_DEVICE;
        d.numMultiprocessors = 132;
        d.numThreadsPerWarp = 32;
        d.maxSharedMemoryPerMultiprocessor = 233472;
        d.coreClockRate = 1980000;
        d.globalMemorySize = 85520809984;
        d.computeCapabilityMajor = 9;
        std::getline(in >> std::ws, text);
        d.name = kept(text);
        add(d);
    }
}
}  // namespace

extern "C" {
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete) {
    requested = request;
    completed = complete;
    return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
    enabled.insert(kind);
    return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityFlushPeriod(uint32_t) { return CUPTI_SUCCESS; }
CUptiResult cuptiActivityFlushAll(uint32_t) {
    std::ifstream records(std::getenv("FAKE_CUPTI_RECORDS"));
    for (std::string line; std::getline(records, line);) give(line);
    next = 0;
    if (buffer != nullptr) completed(nullptr, 0, buffer, room, used);
    buffer = nullptr;
    return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNextRecord(uint8_t* start, size_t valid, CUpti_Activity** record) {
    if (next >= valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = reinterpret_cast<CUpti_Activity*>(start + next);
    next += size_of((*record)->kind);
    return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* dropped) {
    const char* lost = std::getenv("FAKE_CUPTI_DROPPED");
    *dropped = lost != nullptr ? std::strtoul(lost, nullptr, 10) : 0;
    return CUPTI_SUCCESS;
}
CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid, const char** name) {
    *name = std::getenv(((domain == CUPTI_CB_DOMAIN_RUNTIME_API ? "runtime" : "driver") + std::to_string(cbid)).c_str());
    return *name != nullptr ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}
CUptiResult cuptiGetResultString(CUptiResult, const char** text) {
    *text = "an error";
    return CUPTI_SUCCESS;
}
}
#endif
