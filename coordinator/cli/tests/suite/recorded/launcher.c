// Launches kernels by CUDA's driver, as its command line says. Functions of the driver are reached in one of three ways: HOW is
// `dlsym`, `proc` (cuGetProcAddress), or `linked`, for which it is compiled with -DLINKED and linked to the driver.
//
//     launcher HOW [load FILE | library FILE | kernel NAME | alloc BYTES | u32 N | u64 N | at ALLOCATION OFFSET | null |
//                   struct ALLOCATION OFFSET N | map ALLOCATION BOX | launch|extra|graph GRID BLOCK | ex GRID BLOCK CLUSTER]..
//
// Parameters gather until a launch. `struct` is two pointers into an allocation, the second one with the offset, and a number.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef void *H;
typedef unsigned long long P;
typedef struct { unsigned grid[3], block[3], shared; H stream; void *attributes; unsigned count; } Config;
typedef struct { unsigned id, pad, value[16]; } Attribute;
typedef struct { H function; unsigned grid[3], block[3], shared; void **params, **extra; H kernel, context; } Node;

#define FUNCTIONS(F) \
    F(cuInit, cuInit, (unsigned)) \
    F(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (H *, int)) \
    F(cuCtxSetCurrent, cuCtxSetCurrent, (H)) \
    F(cuModuleLoadData, cuModuleLoadData, (H *, const void *)) \
    F(cuModuleGetFunction, cuModuleGetFunction, (H *, H, const char *)) \
    F(cuLibraryLoadData, cuLibraryLoadData, (H *, const void *, void *, void *, unsigned, void *, void *, unsigned)) \
    F(cuLibraryGetKernel, cuLibraryGetKernel, (H *, H, const char *)) \
    F(cuMemAlloc, cuMemAlloc_v2, (P *, size_t)) \
    F(cuTensorMapEncodeTiled, cuTensorMapEncodeTiled, (void *, unsigned, unsigned, void *, const uint64_t *, const uint64_t *, \
        const uint32_t *, const uint32_t *, unsigned, unsigned, unsigned, unsigned)) \
    F(cuLaunchKernel, cuLaunchKernel, (H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H, void **, void **)) \
    F(cuLaunchKernelEx, cuLaunchKernelEx, (const Config *, H, void **, void **)) \
    F(cuGraphCreate, cuGraphCreate, (H *, unsigned)) \
    F(cuGraphAddKernelNode, cuGraphAddKernelNode_v2, (H *, H, const H *, size_t, const Node *)) \
    F(cuGraphInstantiate, cuGraphInstantiateWithFlags, (H *, H, uint64_t)) \
    F(cuGraphLaunch, cuGraphLaunch, (H, H))

#define DECLARE(name, symbol, types) extern int symbol types; static int(*p_##name) types;
FUNCTIONS(DECLARE)

static void fail(const char *what) { fprintf(stderr, "launcher: %s\n", what); exit(3); }

static void reach(const char *how) {
#ifdef LINKED
#define TAKE(name, symbol, types) p_##name = symbol;
    FUNCTIONS(TAKE)
    (void)how;
#else
    H driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) fail(dlerror());
    int (*get)(const char *, void **, int, uint64_t, int *) = 0;
    if (!strcmp(how, "proc")) *(void **)&get = dlsym(driver, "cuGetProcAddress_v2");
#define TAKE(name, symbol, types) \
    if (get) get(#name, (void **)&p_##name, 13000, 0, 0); \
    else *(void **)&p_##name = dlsym(driver, #symbol); \
    if (!p_##name) fail(#name);
    FUNCTIONS(TAKE)
#endif
}

// A file whose last byte is the last one of a page: nothing that can be read is behind it.
static void *image(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f) fail(path);
    fseek(f, 0, SEEK_END);
    size_t size = ftell(f), room = (size + 4095) & ~4095ul;
    rewind(f);
    char *at = mmap(0, room + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(at + room, 4096, PROT_NONE);
    if (fread(at + room - size, 1, size, f) != size) fail(path);
    fclose(f);
    return at + room - size;
}

int main(int count, char **words) {
    H module = 0, library = 0, function = 0, context, graph, node, run;
    P memory[16];
    int allocations = 0, params = 0;
    static char buffer[4096] __attribute__((aligned(64)));
    size_t end = 0;
    void *list[64];
    reach(words[1]);
    p_cuInit(0);
    p_cuDevicePrimaryCtxRetain(&context, 0);
    p_cuCtxSetCurrent(context);
#define NEXT (++n < count ? words[n] : (fail("a word is missing"), ""))
#define PUT(value, align) (end = (end + align - 1) / align * align, memcpy(buffer + end, &(value), sizeof(value)), \
        list[params++] = buffer + end, end += sizeof(value))
    for (int n = 2; n < count; n++) {
        const char *word = words[n];
        if (!strcmp(word, "load")) {
            if (p_cuModuleLoadData(&module, image(NEXT))) fail("the module is refused");
        } else if (!strcmp(word, "library")) {
            if (p_cuLibraryLoadData(&library, image(NEXT), 0, 0, 0, 0, 0, 0)) fail("the library is refused");
        } else if (!strcmp(word, "kernel")) {
            const char *name = NEXT;
            if (library ? p_cuLibraryGetKernel(&function, library, name) : p_cuModuleGetFunction(&function, module, name))
                fail("no such kernel");
        } else if (!strcmp(word, "alloc")) {
            if (p_cuMemAlloc(&memory[allocations++], strtoull(NEXT, 0, 0))) fail("no memory");
        } else if (!strcmp(word, "u32")) {
            uint32_t value = strtoul(NEXT, 0, 0);
            PUT(value, 4);
        } else if (!strcmp(word, "u64")) {
            uint64_t value = strtoull(NEXT, 0, 0);
            PUT(value, 8);
        } else if (!strcmp(word, "at")) {
            P value = memory[atoi(NEXT)];
            value += strtoull(NEXT, 0, 0);
            PUT(value, 8);
        } else if (!strcmp(word, "null")) {
            list[params++] = 0;
        } else if (!strcmp(word, "struct")) {
            struct { P first, second; uint64_t number; } value = { memory[atoi(NEXT)], 0, 0 };
            value.second = value.first + strtoull(NEXT, 0, 0);
            value.number = strtoull(NEXT, 0, 0);
            PUT(value, 8);
        } else if (!strcmp(word, "map")) {
            struct { char bytes[128]; } map;
            P at = memory[atoi(NEXT)];
            uint64_t sizes[2] = { 64, 64 }, strides[1] = { 128 };
            uint32_t box[2] = { 64, strtoul(NEXT, 0, 0) }, steps[2] = { 1, 1 };
            p_cuTensorMapEncodeTiled(&map, 6, 2, (void *)at, sizes, strides, box, steps, 0, 0, 0, 0);
            PUT(map, 64);
        } else {
            unsigned grid = strtoul(NEXT, 0, 0), block = strtoul(NEXT, 0, 0);
            int status = 0;
            if (!strcmp(word, "launch")) {
                status = p_cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, 0, list, 0);
            } else if (!strcmp(word, "extra")) {
                void *extra[] = { (void *)1, buffer, (void *)2, &end, 0 };
                status = p_cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, 0, 0, extra);
            } else if (!strcmp(word, "ex")) {
                Attribute attribute = { 4, 0, { strtoul(NEXT, 0, 0), 1, 1 } };
                Config config = { { grid, 1, 1 }, { block, 1, 1 }, 0, 0, &attribute, 1 };
                status = p_cuLaunchKernelEx(&config, function, list, 0);
            } else if (!strcmp(word, "graph")) {
                Node params_of = { function, { grid, 1, 1 }, { block, 1, 1 }, 0, list, 0, 0, 0 };
                status = p_cuGraphCreate(&graph, 0) || p_cuGraphAddKernelNode(&node, graph, 0, 0, &params_of);
                status = status || p_cuGraphInstantiate(&run, graph, 0) || p_cuGraphLaunch(run, 0);
            } else {
                fail(word);
            }
            if (status) fail("the launch is refused");
            params = 0;
            end = 0;
        }
    }
    puts("done");
    return 0;
}
