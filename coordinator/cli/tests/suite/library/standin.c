/* A stand-in for libNVVM: it makes of each text the PTX in the file that STAND_IN names. It refuses a text with `xor`, says nothing
   of one with `and`, and dies of one with `xchg`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct program { char *text, *out; };

int nvvmCreateProgram(struct program **p) { *p = calloc(1, sizeof **p); return 0; }
int nvvmDestroyProgram(struct program **p) { free((*p)->text); free((*p)->out); free(*p); *p = 0; return 0; }

int nvvmAddModuleToProgram(struct program *p, const char *text, size_t size, const char *name) {
    p->text = calloc(size + 1, 1);
    memcpy(p->text, text, size);
    return name ? 0 : 4;
}

int nvvmCompileProgram(struct program *p, int n, const char **options) {
    p->out = calloc(1 << 16, 1);
    int size = sprintf(p->out, "//\n// Cuda compilation tools, release 98.1, V98.1.37\n");
    for (int i = 0; i < n; i++)
        if (!strcmp(options[i], "-arch=compute_77")) { strcpy(p->out, "error: -arch=compute_77 is an unsupported option"); return 7; }
    if (strstr(p->text, "atomicrmw xchg")) *(volatile int *)0 = 0;
    if (strstr(p->text, "atomicrmw and")) { p->out[0] = 0; return 9; }
    if (strstr(p->text, "atomicrmw xor")) { strcpy(p->out, " Error: unsupported operation"); return 9; }
    FILE *file = fopen(getenv("STAND_IN"), "r");
    if (!file) return 9;
    size += fread(p->out + size, 1, (1 << 16) - size - 1, file);
    fclose(file);
    return 0;
}

int nvvmGetCompiledResultSize(struct program *p, size_t *size) { *size = strlen(p->out) + 1; return 0; }
int nvvmGetCompiledResult(struct program *p, char *out) { strcpy(out, p->out); return 0; }
int nvvmGetProgramLogSize(struct program *p, size_t *size) { *size = strlen(p->out) + 1; return 0; }
int nvvmGetProgramLog(struct program *p, char *out) { strcpy(out, p->out); return 0; }
