/* An OpenCL driver that loads Intel's OpenCL runtime for CPUs and presents its device as an Intel
 * integrated GPU. OpenVINO's GPU plugin then compiles and runs models on a machine without a GPU.
 *
 * Each OpenCL object starts with a pointer to a table of functions. The shim changes entries of the
 * runtime's own table in place: what is asked of the device (device.c), the text of programs
 * (programs.c), launches (launches.c), and what oneDNN tries out (probes.c). All else is the
 * runtime's. It works with every loader, and for libraries that open the loader themselves.
 *
 * EMULATED_GPU_RUNTIME  the path of libintelocl.so
 * EMULATED_GPU_DUMP     a folder for the text, the options and the log of each program
 * EMULATED_GPU_LOG      1 or 2, see shim.h
 */
#define _GNU_SOURCE
#include "shim.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

cl_icd_dispatch runtime;
int log_level;

typedef void *(*find_function)(const char *);
typedef cl_int (*find_platforms)(cl_uint, cl_platform_id *, cl_uint *);
static find_function find;
static find_platforms platforms;
static int is_ready;

void log_line(int level, const char *format, ...) {
    if (log_level < level) return;
    va_list given;
    va_start(given, format);
    fputs("[emulated GPU] ", stderr);
    vfprintf(stderr, format, given);
    fputc('\n', stderr);
    va_end(given);
}

cl_int answer(const void *found, size_t found_size, size_t size, void *value, size_t *needed) {
    if (value && size < found_size) return CL_INVALID_VALUE;
    if (value) memcpy(value, found, found_size);
    if (needed) *needed = found_size;
    return CL_SUCCESS;
}

static int is_writable(cl_icd_dispatch *table) {
    uintptr_t page = sysconf(_SC_PAGESIZE), first = (uintptr_t)table & ~(page - 1);
    return !mprotect((void *)first, (uintptr_t)(table + 1) - first, PROT_READ | PROT_WRITE);
}

static void set_up(void) {
    const char *level = getenv("EMULATED_GPU_LOG"), *path = getenv("EMULATED_GPU_RUNTIME");
    log_level = level ? atoi(level) : 0;
    void *library = dlopen(path ? path : "libintelocl.so", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "[emulated GPU] %s\n", dlerror());
        return;
    }
    find = (find_function)dlsym(library, "clGetExtensionFunctionAddress");
    platforms = find ? (find_platforms)find("clIcdGetPlatformIDsKHR") : NULL;
    cl_platform_id platform;
    if (!platforms || platforms(1, &platform, NULL) != CL_SUCCESS) {
        fprintf(stderr, "[emulated GPU] the runtime has no platform\n");
        return;
    }
    cl_icd_dispatch *table = *(cl_icd_dispatch **)platform;
    runtime = *table;
    if (!is_writable(table) || !take_launches(table)) return;
    take_device_queries(table);
    take_programs(table);
    take_probes(table);
    is_ready = 1;
}

static int ready(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_up);
    return is_ready;
}

/* The three functions that a loader looks for. */

CL_API_ENTRY cl_int CL_API_CALL clIcdGetPlatformIDsKHR(cl_uint room, cl_platform_id *found, cl_uint *count) {
    return ready() ? platforms(room, found, count) : CL_PLATFORM_NOT_FOUND_KHR;
}

CL_API_ENTRY void *CL_API_CALL clGetExtensionFunctionAddress(const char *name) {
    if (!strcmp(name, "clIcdGetPlatformIDsKHR")) return (void *)clIcdGetPlatformIDsKHR;
    return ready() ? find(name) : NULL;
}

CL_API_ENTRY cl_int CL_API_CALL clGetPlatformInfo(cl_platform_id platform, cl_platform_info what, size_t size,
                                                  void *value, size_t *needed) {
    return ready() ? runtime.clGetPlatformInfo(platform, what, size, value, needed) : CL_INVALID_PLATFORM;
}
