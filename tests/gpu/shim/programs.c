/* The text of programs: what is put before it, where it is changed, and how it is built. */
#define _GNU_SOURCE
#include "shim.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* native.cl and work_items.cl stand before each program. */
__asm__(".section .rodata\n"
        "prelude: .incbin \"native.cl\"\n .incbin \"work_items.cl\"\n"
        "prelude_end: .byte 0\n"
        ".previous\n");
extern const char prelude[], prelude_end[];

/* Kernels that hand values from one work-item to another through local memory without a barrier.
 * On a GPU the work-items of a sub-group run in step, so all values are there. Here one work-item
 * may run to its end before the next one starts. A barrier stands before each line that reads such
 * values; each of these lines is reached by all work-items of a group alike. */
static const char *const IN_STEP[] = {
    /* permute_f_y_axes: a tile is transposed. The last one is for blocked layouts. */
    "ACC_VEC_TYPE res = READ_VEC(0, &transpose_buf[bf_local][j_vec]);",
    "WRITE_VEC(TO_OUTPUT_VECTOR_TYPE(DECODE_INPUT0_COMPUTE_VECTOR_TYPE(READ_VEC(0, &transpose_buf[bf_local][j_vec])",
    "DT_OUTPUT_BLOCK_WRITE(output, output_offset, transpose_buf[j]",
    /* reorder_fs_b_yx_fsv32_to_bfyx */
    "const uint data_idx = sglid % X_BLOCK_SIZE + (sglid / X_BLOCK_SIZE) * X_BLOCK_SIZE",
    NULL,
};
static const char BARRIER[] = "barrier(CLK_LOCAL_MEM_FENCE); ";

/* Text that grows; `length` does not count the zero at its end. */
typedef struct {
    char *start;
    size_t length;
} Text;

static void insert(Text *text, size_t at, const char *more, size_t length) {
    text->start = realloc(text->start, text->length + length + 1);
    memmove(text->start + at + length, text->start + at, text->length - at + 1);
    memcpy(text->start + at, more, length);
    text->length += length;
}

static void insert_barriers(Text *text) {
    const size_t length = sizeof BARRIER - 1;
    for (const char *const *line = IN_STEP; *line; line++)
        for (char *found = strstr(text->start, *line); found; found = strstr(found, *line)) {
            size_t at = found - text->start;
            insert(text, at, BARRIER, length);
            found = text->start + at + length + 1;
        }
}

static cl_program CL_API_CALL with_source(cl_context context, cl_uint count, const char **parts, const size_t *lengths,
                                          cl_int *error) {
    Text text = {calloc(1, 1), 0};
    for (cl_uint i = 0; i < count; i++)
        insert(&text, text.length, parts[i], lengths && lengths[i] ? lengths[i] : strlen(parts[i]));
    note_probe(text.start);
    insert_barriers(&text);
    insert(&text, 0, prelude, prelude_end - prelude);
    cl_program program =
        runtime.clCreateProgramWithSource(context, 1, (const char **)&text.start, &text.length, error);
    free(text.start);
    return program;
}

/* Without the options that only a GPU's compiler knows. */
static char *known_options(const char *options) {
    char *given = strdup(options ? options : ""), *kept = calloc(1, strlen(given) + 2), *rest = NULL;
    for (char *word = strtok_r(given, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        if (strncmp(word, "-cl-intel-", 10) && strncmp(word, "-igc", 4) && strcmp(word, "-cl-no-subgroup-ifp"))
            strcat(strcat(kept, word), " ");
    free(given);
    return kept;
}

static void dump(cl_program program, const char *options, cl_device_id device, cl_int error) {
    static int number;
    char name[4096];
    snprintf(name, sizeof name, "%s/%d_%05d%s.cl", getenv("EMULATED_GPU_DUMP"), (int)getpid(),
             __atomic_fetch_add(&number, 1, __ATOMIC_RELAXED), error ? "_fails" : "");
    FILE *file = fopen(name, "w");
    if (!file) return;
    size_t size = 0;
    fprintf(file, "// %s\n", options);
    if (!runtime.clGetProgramInfo(program, CL_PROGRAM_SOURCE, 0, NULL, &size) && size) {
        char *text = calloc(1, size + 1);
        runtime.clGetProgramInfo(program, CL_PROGRAM_SOURCE, size, text, NULL);
        fputs(text, file);
        free(text);
    }
    if (!runtime.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, NULL, &size) && size) {
        char *text = calloc(1, size + 1);
        runtime.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, text, NULL);
        fprintf(file, "\n/* %s */\n", text);
        free(text);
    }
    fclose(file);
}

static cl_int CL_API_CALL build(cl_program program, cl_uint count, const cl_device_id *devices, const char *options,
                                void(CL_CALLBACK *notify)(cl_program, void *), void *data) {
    char *kept = known_options(options);
    cl_int error = runtime.clBuildProgram(program, count, devices, kept, notify, data);
    log_line(1, "build with %s: %d", kept, error);
    /* The plugin releases a program, and later retains it through one of its kernels. This runtime
     * refuses that, so no built program is let go. */
    if (!error) runtime.clRetainProgram(program);
    if (getenv("EMULATED_GPU_DUMP") && count) dump(program, kept, devices[0], error);
    free(kept);
    return error;
}

void take_programs(cl_icd_dispatch *table) {
    table->clCreateProgramWithSource = with_source;
    table->clBuildProgram = build;
}
