/* What the parts of the shim share; entry.c says what the shim is. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_icd.h>

extern cl_icd_dispatch runtime; /* the entries of Intel's runtime, as they were */
extern int log_level;           /* EMULATED_GPU_LOG: 1 builds, 2 launches and their arguments too */

void log_line(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Answers a query the way OpenCL does: `size` bytes at `value` are the caller's, if there are any. */
cl_int answer(const void *found, size_t found_size, size_t size, void *value, size_t *needed);

/* Each part puts its own entries into the runtime's table. */
void take_device_queries(cl_icd_dispatch *table);
void take_programs(cl_icd_dispatch *table);
void take_probes(cl_icd_dispatch *table);
int take_launches(cl_icd_dispatch *table); /* 0 where it cannot */

/* probes.c: where oneDNN is about to look at the machine, keeps what to answer. */
void note_probe(const char *source);
